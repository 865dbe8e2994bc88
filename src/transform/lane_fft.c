#include "transform/lane_fft.h"

#include <assert.h>
#include <math.h>

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
enum lane_width lane_width(void)
{
    return __builtin_cpu_supports("avx2") ? LANE_WIDE : LANE_PLAIN;
}
#else
#define WIDE
enum lane_width lane_width(void)
{
    return LANE_PLAIN;
}
#endif
#define INLINE static inline __attribute__((always_inline))

/* --- tables ----------------------------------------------------------------------------------- */

uint64_t lane_fft_floats(uint32_t size)
{
    return 6 * (uint64_t)size + 16; /* stages of n, n / p, ... roots, and p more of a prime stage */
}

static uint32_t next_factor(uint32_t size)
{
    static const uint32_t quick[] = {4, 2, 3, 5};
    for (unsigned i = 0; i < 4; i++)
        if (size % quick[i] == 0)
            return quick[i];
    for (uint32_t p = 7; p * p <= size; p += 2)
        if (size % p == 0)
            return p;
    return size;
}

static float *add_root(float *at, uint64_t turn, uint64_t size)
{
    double angle = -2 * M_PI * (double)(turn % size) / (double)size;
    at[0] = (float)cos(angle);
    at[1] = (float)sin(angle);
    return at + 2;
}

void lane_fft_init(struct lane_fft *fft, uint32_t size, enum lane_width width, float *memory)
{
    *fft = (struct lane_fft){.size = size, .roots = memory, .width = width};
    float *at = memory;
    for (uint32_t left = size; left > 1;) {
        uint32_t p = next_factor(left), m = left / p;
        assert(fft->factor_count < LANE_FFT_FACTORS);
        fft->factors[fft->factor_count++] = p;
        for (uint32_t k = 0; p > 5 && k < p; k++)
            at = add_root(at, k, p);
        for (uint32_t q = 0; q < m; q++)
            for (uint32_t r = 1; r < p; r++)
                at = add_root(at, (uint64_t)q * r, left);
        left = m;
    }
}

/* --- one stage (Stockham: in order, from one array into the other) ---------------------------- */

/* A stage of radix p takes transforms of p * m points, s of them side by side, apart into p of m.
 */
struct stage {
    const struct lane_cell *in;
    struct lane_cell *out;
    uint64_t m, s;
    const float *roots;
};

INLINE void put(struct lane_cell *to, const struct lane_cell *value, const float *root)
{
    to->re = value->re * root[0] - value->im * root[1];
    to->im = value->re * root[1] + value->im * root[0];
}

INLINE void add(struct lane_cell *sum, const struct lane_cell *a, const struct lane_cell *b)
{
    sum->re = a->re + b->re;
    sum->im = a->im + b->im;
}

INLINE void subtract(struct lane_cell *difference, const struct lane_cell *a,
                     const struct lane_cell *b)
{
    difference->re = a->re - b->re;
    difference->im = a->im - b->im;
}

/* minus = a - i b, plus = a + i b */
INLINE void turn(struct lane_cell *minus, struct lane_cell *plus, const struct lane_cell *a,
                 const struct lane_cell *b)
{
    minus->re = a->re + b->im;
    minus->im = a->im - b->re;
    plus->re = a->re - b->im;
    plus->im = a->im + b->re;
}

INLINE void stage_two(const struct stage *st)
{
    for (uint64_t q = 0; q < st->m; q++) {
        const float *root = st->roots + 2 * q;
        for (uint64_t j = 0; j < st->s; j++) {
            const struct lane_cell *in = st->in + j + st->s * q;
            struct lane_cell *out = st->out + j + st->s * 2 * q, difference;
            const struct lane_cell *b = in + st->s * st->m;
            subtract(&difference, in, b);
            add(&out[0], in, b);
            put(&out[st->s], &difference, root);
        }
    }
}

INLINE void stage_three(const struct stage *st)
{
    const float half_root = 0.86602540378443864676f; /* sin(pi / 3) */
    for (uint64_t q = 0; q < st->m; q++) {
        const float *root = st->roots + 4 * q;
        for (uint64_t j = 0; j < st->s; j++) {
            const struct lane_cell *a = st->in + j + st->s * q;
            const struct lane_cell *b = a + st->s * st->m, *c = b + st->s * st->m;
            struct lane_cell *out = st->out + j + st->s * 3 * q, sum, middle, side, y1, y2;
            add(&sum, b, c);
            subtract(&side, b, c);
            middle.re = a->re - sum.re * 0.5f;
            middle.im = a->im - sum.im * 0.5f;
            side.re *= half_root;
            side.im *= half_root;
            turn(&y1, &y2, &middle, &side);
            add(&out[0], a, &sum);
            put(&out[st->s], &y1, root);
            put(&out[2 * st->s], &y2, root + 2);
        }
    }
}

INLINE void stage_four(const struct stage *st)
{
    for (uint64_t q = 0; q < st->m; q++) {
        const float *root = st->roots + 6 * q;
        for (uint64_t j = 0; j < st->s; j++) {
            const struct lane_cell *a = st->in + j + st->s * q;
            const struct lane_cell *b = a + st->s * st->m, *c = b + st->s * st->m;
            const struct lane_cell *d = c + st->s * st->m;
            struct lane_cell *out = st->out + j + st->s * 4 * q, t0, t1, t2, t3, y1, y2, y3;
            add(&t0, a, c);
            subtract(&t1, a, c);
            add(&t2, b, d);
            subtract(&t3, b, d);
            subtract(&y2, &t0, &t2);
            turn(&y1, &y3, &t1, &t3);
            add(&out[0], &t0, &t2);
            put(&out[st->s], &y1, root);
            put(&out[2 * st->s], &y2, root + 2);
            put(&out[3 * st->s], &y3, root + 4);
        }
    }
}

/* to = a + b * x + c * y */
INLINE void blend(struct lane_cell *to, const struct lane_cell *a, const struct lane_cell *x,
                  float b, const struct lane_cell *y, float c)
{
    to->re = a->re + x->re * b + y->re * c;
    to->im = a->im + x->im * b + y->im * c;
}

INLINE void stage_five(const struct stage *st)
{
    const float c1 = 0.30901699437494742410f, c2 = -0.80901699437494742410f; /* cos(2 pi k / 5) */
    const float s1 = 0.95105651629515357212f, s2 = 0.58778525229247312917f;  /* sin(2 pi k / 5) */
    const struct lane_cell zero = {0};
    for (uint64_t q = 0; q < st->m; q++) {
        const float *root = st->roots + 8 * q;
        for (uint64_t j = 0; j < st->s; j++) {
            uint64_t step = st->s * st->m;
            const struct lane_cell *a = st->in + j + st->s * q, *b = a + step, *c = b + step;
            const struct lane_cell *d = c + step, *e = d + step;
            struct lane_cell *out = st->out + j + st->s * 5 * q;
            struct lane_cell t1, t2, t3, t4, m1, m2, n1, n2, y1, y2, y3, y4;
            add(&t1, b, e);
            add(&t2, c, d);
            subtract(&t3, b, e);
            subtract(&t4, c, d);
            blend(&m1, a, &t1, c1, &t2, c2);
            blend(&m2, a, &t1, c2, &t2, c1);
            blend(&n1, &zero, &t3, s1, &t4, s2);
            blend(&n2, &zero, &t3, s2, &t4, -s1);
            turn(&y1, &y4, &m1, &n1);
            turn(&y2, &y3, &m2, &n2);
            blend(&out[0], a, &t1, 1, &t2, 1);
            put(&out[st->s], &y1, root);
            put(&out[2 * st->s], &y2, root + 2);
            put(&out[3 * st->s], &y3, root + 4);
            put(&out[4 * st->s], &y4, root + 6);
        }
    }
}

/* A prime p: by the definition. Its own roots stand in front of the others. */
INLINE void stage_prime(const struct stage *st, uint64_t p)
{
    const float *own = st->roots, *root = own + 2 * p;
    for (uint64_t q = 0; q < st->m; q++, root += 2 * (p - 1))
        for (uint64_t r = 0; r < p; r++)
            for (uint64_t j = 0; j < st->s; j++) {
                const struct lane_cell *in = st->in + j + st->s * q;
                struct lane_cell sum = {0}, part;
                for (uint64_t k = 0, turns = 0; k < p; k++, turns = (turns + r) % p) {
                    put(&part, &in[st->s * st->m * k], own + 2 * turns);
                    add(&sum, &sum, &part);
                }
                struct lane_cell *out = st->out + j + st->s * (p * q + r);
                if (r)
                    put(out, &sum, root + 2 * (r - 1));
                else
                    *out = sum;
            }
}

/* --- all stages ------------------------------------------------------------------------------- */

INLINE struct lane_cell *run_all(const struct lane_fft *fft, struct lane_cell *data,
                                 struct lane_cell *work)
{
    struct stage st = {.in = data, .out = work, .m = fft->size, .s = 1, .roots = fft->roots};
    for (uint32_t i = 0; i < fft->factor_count; i++) {
        uint64_t p = fft->factors[i];
        st.m /= p;
        if (p == 4)
            stage_four(&st);
        else if (p == 2)
            stage_two(&st);
        else if (p == 3)
            stage_three(&st);
        else if (p == 5)
            stage_five(&st);
        else
            stage_prime(&st, p);
        st.roots += 2 * st.m * (p - 1) + (p > 5 ? 2 * p : 0);
        st.s *= p;
        struct lane_cell *from = st.out;
        st.out = st.out == work ? data : work;
        st.in = from;
    }
    return st.out == work ? data : work;
}

static struct lane_cell *run_plain(const struct lane_fft *fft, struct lane_cell *data,
                                   struct lane_cell *work)
{
    return run_all(fft, data, work);
}

WIDE static struct lane_cell *run_wide(const struct lane_fft *fft, struct lane_cell *data,
                                       struct lane_cell *work)
{
    return run_all(fft, data, work);
}

struct lane_cell *lane_fft_run(const struct lane_fft *fft, struct lane_cell *data,
                               struct lane_cell *work)
{
    return fft->width == LANE_WIDE ? run_wide(fft, data, work) : run_plain(fft, data, work);
}
