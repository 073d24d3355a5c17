// SPDX-License-Identifier: MIT
package workload;

import java.io.File;

/** What every workload does alike: say READY, wait for the go, know its own CPU time. */
final class Workload {
    private Workload() {
    }

    /**
     * Says that the JVM is up, then waits for the file named by -Dgate=FILE, so that a test can
     * begin to record before the first CPU second is burnt.
     */
    static void ready() throws InterruptedException {
        say("READY");
        String gate = System.getProperty("gate");
        while (gate != null && !new File(gate).exists())
            Thread.sleep(5);
    }

    /** All work is done; lives on until it is killed, without using CPU, but with -Dends=true. */
    static void done() throws InterruptedException {
        say("DONE");
        if (!Boolean.getBoolean("ends"))
            Thread.sleep(Long.MAX_VALUE);
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** Returns the time at which the thread is in this state. */
    static long seen(Thread thread, Thread.State state) {
        while (thread.getState() != state)
            Thread.yield();
        return System.nanoTime();
    }

    static long argument(String[] args, int index, long otherwise) {
        return args.length > index ? Long.parseLong(args[index]) : otherwise;
    }
}
