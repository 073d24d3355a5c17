// SPDX-License-Identifier: MIT
package workload;

/** Deep FRAMES: a thread that calls itself so many times over, works down there, returns, and begins again. */
public final class Deep {
    static volatile long sink;

    static long down(int frames) {
        return frames > 1 ? down(frames - 1) + 1 : TwoBusy.spin(2_000_000);
    }

    public static void main(String[] args) throws Exception {
        int frames = (int) Workload.argument(args, 0, 1000);
        Thread deep = new Thread(null, () -> {
            for (;;)
                sink += down(frames);
        }, "deep", 64L << 20);
        deep.setDaemon(true);
        deep.start();
        Workload.ready();
        Thread.sleep(Long.MAX_VALUE);
    }
}
