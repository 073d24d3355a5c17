// SPDX-License-Identifier: MIT
package workload;

/**
 * WaitingCalls MILLISECONDS PHASES: threads whose native code waits 1 ms at a time, in poll, select, epoll_wait,
 * nanosleep, futex, read; recv, read, send and accept of sockets with a timeout; semtimedop, sigtimedwait,
 * io_getevents, epoll_pwait2, io_uring_enter, futex_waitv, connect with a timeout, msgrcv and pause. Each phase begins
 * when the file of the property "gate" with the phase's number exists, and says "EINTR PHASE n...", how many calls of
 * each kind a signal has ended that was not the program's own, and "WAITS PHASE n".
 */
public final class WaitingCalls {
    static final int KINDS = 19;

    /** Returns how many waits a signal has ended, and adds the number of all to waits[kind]. */
    static native long waits(int kind, long milliseconds, long[] waits);

    static void phase(int number, long milliseconds) throws InterruptedException {
        long[] interrupted = new long[KINDS], waits = new long[KINDS];
        Thread[] threads = new Thread[KINDS];
        for (int i = 0; i < KINDS; i++) {
            int kind = i;
            threads[i] = new Thread(() -> interrupted[kind] = waits(kind, milliseconds, waits), "waits-" + kind);
            threads[i].start();
        }
        StringBuilder line = new StringBuilder("EINTR " + number);
        long all = 0;
        for (int i = 0; i < KINDS; i++) {
            threads[i].join();
            line.append(" ").append(interrupted[i]);
            all += waits[i];
        }
        Workload.say(line.toString());
        Workload.say("WAITS " + number + " " + all);
    }

    public static void main(String[] args) throws Exception {
        String gate = System.getProperty("gate");
        System.loadLibrary("workload");
        System.out.println("READY");
        for (int i = 1; i <= Integer.parseInt(args[1]); i++) {
            while (!new java.io.File(gate + i).exists())
                Thread.sleep(10);
            phase(i, Long.parseLong(args[0]));
        }
        Workload.done();
    }
}
