// y[i] = x[ids[i]] for each i below n, by all threads of the launch.
template <class N, class T>
DEVICE void take(i64 n, const N* ids, const T* x, T* y) {
#pragma unroll 4
    for (i64 i = thread_id(); i < n; i += thread_count()) y[i] = x[ids[i]];
}
