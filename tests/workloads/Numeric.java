// SPDX-License-Identifier: MIT
package workload;

/** Numeric [SECONDS]: products of matrices, a Fourier transform, bodies that attract each other, a sieve. */
public final class Numeric {
    static volatile double sink;
    private static final int N = 96, POINTS = 1024, BODIES = 24;
    private static final double[][] A = new double[N][N], B = new double[N][N], C = new double[N][N];
    private static final double[] REAL = new double[POINTS], IMAGINARY = new double[POINTS];
    private static final double[][] PLACES = new double[BODIES][3], SPEEDS = new double[BODIES][3];

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Workload.argument(args, 0, 6) * 1_000_000_000L;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                A[i][j] = B[j][i] = i * 0.5 - j;
        for (int i = 0; i < BODIES; i++)
            PLACES[i] = new double[] {Math.cos(i), Math.sin(i), i * 0.1};
        Workload.ready();
        while (System.nanoTime() < end) {
            multiply();
            for (int i = 0; i < POINTS; i++) {
                REAL[i] = Math.sin(i * 0.1);
                IMAGINARY[i] = 0;
            }
            transform(REAL, IMAGINARY);
            for (int i = 0; i < 100; i++)
                move(1e-3);
            sink = C[1][2] + REAL[3] + PLACES[4][0] + sieve(20_000);
        }
        Workload.done();
    }

    static void multiply() {
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                C[i][j] = dot(A[i], j);
    }

    static double dot(double[] row, int column) {
        double sum = 0;
        for (int k = 0; k < N; k++)
            sum += row[k] * B[k][column];
        return sum;
    }

    static void transform(double[] real, double[] imaginary) {
        for (int size = 2; size <= real.length; size *= 2)
            for (int start = 0; start < real.length; start += size)
                for (int k = 0; k < size / 2; k++)
                    butterfly(real, imaginary, start + k, start + k + size / 2, -2 * Math.PI * k / size);
    }

    static void butterfly(double[] real, double[] imaginary, int a, int b, double angle) {
        double cos = Math.cos(angle), sin = Math.sin(angle);
        double x = cos * real[b] - sin * imaginary[b], y = cos * imaginary[b] + sin * real[b];
        real[b] = real[a] - x;
        imaginary[b] = imaginary[a] - y;
        real[a] += x;
        imaginary[a] += y;
    }

    static void move(double step) {
        for (int i = 0; i < BODIES; i++)
            for (int j = 0; j < BODIES; j++)
                if (i != j)
                    attract(PLACES[i], PLACES[j], SPEEDS[i], step);
        for (int i = 0; i < BODIES; i++)
            for (int k = 0; k < 3; k++)
                PLACES[i][k] += step * SPEEDS[i][k];
    }

    static void attract(double[] a, double[] b, double[] speed, double step) {
        double square = 0.1;
        for (int k = 0; k < 3; k++)
            square += (a[k] - b[k]) * (a[k] - b[k]);
        double force = step / Math.pow(square, 1.5);
        for (int k = 0; k < 3; k++)
            speed[k] += force * (b[k] - a[k]);
    }

    static int sieve(int limit) {
        boolean[] composite = new boolean[limit];
        int count = 0;
        for (int i = 2; i < limit; i++) {
            if (composite[i])
                continue;
            count++;
            for (int k = 2 * i; k < limit; k += i)
                composite[k] = true;
        }
        return count;
    }
}
