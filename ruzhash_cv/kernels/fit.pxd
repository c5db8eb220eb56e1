# What kernels of rays use: see fit.py.

cdef Py_ssize_t MOST_ITERATIONS

cdef void write_squared_ray_distances(double[:, ::1] rays, double* model, double* squared) noexcept nogil
cdef void write_squared_turns(double[:, ::1] rays, double* model, double* squared) noexcept nogil
cdef void solve(
    double[:, ::1] gram, double* model, double* vector, double[:, ::1] factor, Py_ssize_t n, Py_ssize_t n_iterations
) noexcept nogil
cdef void make_rank_two(double* model, double[:, ::1] gram, double[:, ::1] factor) noexcept nogil
cdef (Py_ssize_t, double, double) weigh(
    double* squared, double* given, Py_ssize_t n_all, double limit, double width, double median,
    Py_ssize_t* rows, double* weights, double* work
) noexcept nogil
