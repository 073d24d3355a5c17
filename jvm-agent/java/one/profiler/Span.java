// SPDX-License-Identifier: MIT
package one.profiler;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Spans of time on a thread, with a tag such as the name of a request. They are recorded beside the samples, in JFR
 * files and as the event span. Without a recording, nothing is done.
 *
 * <pre>
 * long start = Span.start();
 * handle(request);
 * Span.end(start, request.path());
 * </pre>
 */
public class Span {
    // The time of a thread's newest sample, or Long.MAX_VALUE where that is not known.
    private static final ThreadLocal<ByteBuffer> NEWEST = ThreadLocal.withInitial(() -> {
        ByteBuffer buffer = isVirtual() ? null : Recording.getThreadLocalBuffer();
        if (buffer != null)
            return buffer.order(ByteOrder.nativeOrder());
        return ByteBuffer.allocate(Long.BYTES).putLong(0, Long.MAX_VALUE);
    });

    private Span() {
    }

    // Its samples are those of the threads that carry it, one after the other. The name is that of all of their group.
    private static boolean isVirtual() {
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        return group != null && group.getName().equals("VirtualThreads");
    }

    private static boolean isRecorded() {
        return Recording.state == Recording.RUNNING;
    }

    private static boolean hasSampleSince(long start) {
        return NEWEST.get().getLong(0) >= start;
    }

    /** The time at which a span of this thread begins; 0 if spans are not recorded. */
    public static long start() {
        return isRecorded() ? Recording.timestamp() : 0;
    }

    /** Ends the span that began at {@code start}. A tag may be null. */
    public static void end(long start, String tag) {
        if (start != 0)
            emit(start, Recording.timestamp(), tag);
    }

    /** The same, but the span may be left out if this thread was not sampled in it. */
    public static void endIfProfiled(long start, String tag) {
        if (start != 0)
            emitIfProfiled(start, Recording.timestamp(), tag);
    }

    /** Records a span of this thread between two times of {@link Recording#timestamp}. */
    public static void emit(long start, long end, String tag) {
        if (isRecorded())
            Recording.emitSpan(start, end, tag);
    }

    /** The same, but the span may be left out if this thread was not sampled in it. */
    public static void emitIfProfiled(long start, long end, String tag) {
        if (isRecorded() && hasSampleSince(start))
            Recording.emitSpan(start, end, tag);
    }
}
