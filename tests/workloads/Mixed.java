// SPDX-License-Identifier: MIT
package workload;

/**
 * Mixed: a stack of 60 frames as programs have them, each method another: a thread's native ones, interpreted ones (iN,
 * which a test keeps from being compiled), compiled ones (cN, kept from being inlined), inlined ones (nN), and native
 * code that has called Java.
 */
public final class Mixed {
    static volatile long sink;

    static long i0(int x) { return i1(x) + 1; }
    static long i1(int x) { return i2(x) + 2; }
    static long i2(int x) { return i3(x) + 3; }
    static long i3(int x) { return i4(x) + 4; }
    static long i4(int x) { return i5(x) + 5; }
    static long i5(int x) { return i6(x) + 6; }
    static long i6(int x) { return i7(x) + 7; }
    static long i7(int x) { return i8(x) + 8; }
    static long i8(int x) { return i9(x) + 9; }
    static long i9(int x) { return i10(x) + 10; }
    static long i10(int x) { return i11(x) + 11; }
    static long i11(int x) { return c0(x) + 12; }

    static long c0(int x) { return c1(x) + 1; }
    static long c1(int x) { return c2(x) + 2; }
    static long c2(int x) { return c3(x) + 3; }
    static long c3(int x) { return c4(x) + 4; }
    static long c4(int x) { return c5(x) + 5; }
    static long c5(int x) { return c6(x) + 6; }
    static long c6(int x) { return c7(x) + 7; }
    static long c7(int x) { return c8(x) + 8; }
    static long c8(int x) { return c9(x) + 9; }
    static long c9(int x) { return c10(x) + 10; }
    static long c10(int x) { return c11(x) + 11; }
    static long c11(int x) { return c12(x) + 12; }
    static long c12(int x) { return c13(x) + 13; }
    static long c13(int x) { return c14(x) + 14; }
    static long c14(int x) { return c15(x) + 15; }
    static long c15(int x) { return c16(x) + 16; }
    static long c16(int x) { return c17(x) + 17; }
    static long c17(int x) { return c18(x) + 18; }
    static long c18(int x) { return n0(x) + 19; }

    static long n0(int x) { return n1(x) + 1; }
    static long n1(int x) { return n2(x) + 2; }
    static long n2(int x) { return n3(x) + 3; }
    static long n3(int x) { return n4(x) + 4; }
    static long n4(int x) { return n5(x) + 5; }
    static long n5(int x) { return n6(x) + 6; }
    static long n6(int x) { return n7(x) + 7; }
    static long n7(int x) { return n8(x) + 8; }
    static long n8(int x) { return n9(x) + 9; }
    static long n9(int x) { return Interleave.down(x) + 10; }

    public static void main(String[] args) throws Exception {
        Thread mixed = new Thread(() -> {
            for (;;)
                sink += i0(1);
        }, "mixed");
        mixed.setDaemon(true);
        mixed.start();
        Workload.ready();
        Thread.sleep(Long.MAX_VALUE);
    }
}
