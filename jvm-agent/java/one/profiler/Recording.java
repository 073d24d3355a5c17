// SPDX-License-Identifier: MIT
package one.profiler;

import java.nio.ByteBuffer;

/** Tells whether a recording runs that wants spans, and what time it is on the clock of its samples. */
public class Recording {
    /** There is no library. */
    public static final int UNAVAILABLE = 0;
    /** There is a library, but no recording that wants spans. */
    public static final int STOPPED = 1;
    /** A recording runs that wants spans: one into a JFR file, or one of the event span. */
    public static final int RUNNING = 2;

    private static final long FREQUENCY = 1_000_000_000L;

    // The library sets it.
    static volatile int state = atFirst();

    private Recording() {
    }

    private static int atFirst() {
        try {
            return registerNatives();
        } catch (UnsatisfiedLinkError e) {
            return UNAVAILABLE;
        }
    }

    /** UNAVAILABLE, STOPPED or RUNNING. */
    public static int state() {
        return state;
    }

    /** Ticks of {@link #timestamp} in a second. */
    public static long clockFrequency() {
        return FREQUENCY;
    }

    /** The time of the clock by which samples and spans are recorded. */
    public static long timestamp() {
        return System.nanoTime();
    }

    private static native int registerNatives();

    static native ByteBuffer getThreadLocalBuffer();

    static native void emitSpan(long start, long end, String tag);
}
