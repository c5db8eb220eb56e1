# What other kernels use: see residuals.py.

cdef Py_ssize_t OF_MOTION, OF_PLANE, RAYS_OF_PLANE

# Residuals are computed in double precision, or in single precision if models are only ranked by them.
ctypedef fused Real:
    float
    double

cdef void write_squared_ray_distances(Real[:, ::1] rays, double* model, Real* squared) noexcept nogil
cdef void write_residuals(
    Py_ssize_t kind, Real[:, ::1] points, double[:, ::1] models, Py_ssize_t item, Real* squared
) noexcept nogil
cdef double nth_smallest(double* values, Py_ssize_t n, Py_ssize_t nth) noexcept nogil
