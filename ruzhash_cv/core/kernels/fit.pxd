# What other kernels use: see fit.py.

cdef Py_ssize_t EQUATIONS, MOST_ITERATIONS, TRANSFORM

cdef void write_transform(
    double[:, ::1] points, Py_ssize_t* rows, double* weights, Py_ssize_t n, double* model, double[:, :, ::1] room, double* fitted
) noexcept nogil
cdef void write_matrix(
    Py_ssize_t kind, double[:, ::1] points, Py_ssize_t* rows, double* weights, Py_ssize_t n, double* model,
    double[:, :, ::1] room, double* fitted
) noexcept nogil
cdef void solve(
    double[:, ::1] gram, double* model, double* vector, double[:, ::1] factor, Py_ssize_t n, Py_ssize_t n_iterations
) noexcept nogil
cdef void divide_by_norm(double* model, double* scaled) noexcept nogil
cdef void make_rank_two(double* model, double[:, ::1] gram, double[:, ::1] factor) noexcept nogil
cdef (Py_ssize_t, double, double) weigh(
    double* squared, double* given, Py_ssize_t n_all, double limit, double width, double median, double floor,
    Py_ssize_t* rows, double* weights, double* work
) noexcept nogil
