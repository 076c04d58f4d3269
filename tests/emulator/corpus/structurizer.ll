; For an infinite x the result is 7 on every way through the switch. Reduced from random program 1752, which LLVM 22
; miscompiles for gfx942 and gfx950 (fixed by https://github.com/llvm/llvm-project/pull/183792).
define i32 @choose(i32 %way, double %x, i32 %bits) {
entry:
  switch i32 %way, label %default [
    i32 0, label %first
    i32 3, label %second
  ]

default:
  %size.default = call double @llvm.fabs.f64(double %x)
  br label %end

first:
  %size.first = call double @llvm.fabs.f64(double %x)
  %half = lshr i32 %bits, 1
  br label %end

second:
  %size.second = call double @llvm.fabs.f64(double %x)
  %third = udiv i32 %bits, 3
  br label %end

end:
  %size = phi double [ %size.default, %default ], [ %size.first, %first ], [ %size.second, %second ]
  %value = phi i32 [ %bits, %default ], [ %half, %first ], [ %third, %second ]
  %small = fcmp olt double %size, 1.000000e+09
  %result = select i1 %small, i32 %value, i32 7
  ret i32 %result
}

declare double @llvm.fabs.f64(double)
