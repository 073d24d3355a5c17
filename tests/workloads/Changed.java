// SPDX-License-Identifier: MIT
package workload;

/**
 * Changed: for ever calls step() and other(), 100 times a second each, and says "CODE hash" with a hash of the bytecode
 * of both, which the JVM tells by JVMTI.
 */
public final class Changed {
    static volatile long sink;

    static void step() {
        sink++;
    }

    static void other() {
        sink--;
    }

    /** Of the methods of a class with this name. */
    private static native long hashOfCode(Class<?> type, String name);

    public static void main(String[] args) throws Exception {
        System.loadLibrary("workload");
        Workload.ready();
        for (;;) {
            for (int i = 0; i < 10; i++) {
                step();
                other();
                Thread.sleep(10);
            }
            long code = hashOfCode(Changed.class, "step") * 31 + hashOfCode(Changed.class, "other");
            Workload.say("CODE " + Long.toHexString(code));
        }
    }
}
