//@ entry: unused_wmma_header
//@ header: mma.h, crt/mma.h
//@ contract: no-op
//@ note: included and not used; a use of nvcuda::wmma is refused
//@ end
