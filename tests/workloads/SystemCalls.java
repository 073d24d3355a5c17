// SPDX-License-Identifier: MIT
package workload;

/**
 * SystemCalls SECONDS: calls that the kernel does not restart after a signal (poll, epoll_wait,
 * nanosleep) with short timeouts.
 * Says "EINTR poll epoll sleep", how often each was interrupted (0 0 0 without a profiler), and "CALLS n".
 * SystemCalls exec PROGRAM ARGS: replaces the JVM by another program, with busy threads, once the gate is open.
 */
public final class SystemCalls {
    static {
        System.loadLibrary("workload");
    }

    static volatile long sink;

    /** EINTR seen by poll, epoll_wait, nanosleep, and the calls made, within so many milliseconds. */
    static native long[] interrupted(long milliseconds);

    /** Comes back only when it failed. */
    static native int exec(String[] command);

    public static void main(String[] args) throws Exception {
        Workload.ready();
        if (args[0].equals("exec")) {
            for (int i = 0; i < 2; i++)
                daemon("busy-" + i);
            Thread.sleep(500);
            String[] command = new String[args.length - 1];
            System.arraycopy(args, 1, command, 0, command.length);
            System.exit(exec(command));
        }
        long[] seen = interrupted(1000 * Long.parseLong(args[0]));
        Workload.say("EINTR " + seen[0] + " " + seen[1] + " " + seen[2]);
        Workload.say("CALLS " + seen[3]);
        Workload.done();
    }

    private static void daemon(String name) {
        Thread busy = new Thread(() -> {
            for (;;)
                sink += TwoBusy.spin(1_000_000);
        }, name);
        busy.setDaemon(true);
        busy.start();
    }
}
