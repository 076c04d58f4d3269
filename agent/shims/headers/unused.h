//@ entry: unused_wmma_header
//@ header: mma.h, crt/mma.h
//@ contract: no-op
//@ note: included and not used; a use of nvcuda::wmma is refused
//@ end

//@ entry: openmp_declarations
//@ header: omp.h
//@ contract: weaker
//@ note: the functions of OpenMP that sources call, declared; locks are not. Compile the host code with OpenMP as before
extern "C" {
int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_get_max_threads(void);
int omp_get_num_procs(void);
int omp_in_parallel(void);
void omp_set_num_threads(int);
double omp_get_wtime(void);
double omp_get_wtick(void);
}
//@ end
