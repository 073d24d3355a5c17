// SPDX-License-Identifier: MIT
package one.profiler;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The trace and the span that a thread works for. Samples of the thread carry both, in every format that can hold them.
 * They are kept in memory in OpenTelemetry's layout (OTEP 4947), so other profilers find them too. Nothing native is
 * called to set them, and they may be set before there is a library or a recording.
 *
 * <pre>
 * TraceContext.set(traceHigh, traceLow, spanId);
 * handle(request);
 * TraceContext.clear();
 * </pre>
 *
 * A virtual thread has no context: it moves from one thread of the system to another, and sets none.
 */
public final class TraceContext {
    // The record: ids of the trace (16 bytes) and of the span (8), then 1 if they are valid.
    private static final int SPAN = 16, VALID = 24, BYTES = 32;
    private static final int TRIES_EACH = 65536; // calls between two looks for the library, which take some 30 us

    private static final Class<?> VIRTUAL = classOfVirtualThreads();
    private static final ThreadLocal<TraceContext> OF_THREAD = ThreadLocal.withInitial(TraceContext::new);

    private final ByteBuffer record = ByteBuffer.allocateDirect(BYTES);
    private final AtomicInteger order = new AtomicInteger(); // keeps the compiler from moving what is written
    private final boolean isVirtual = VIRTUAL != null && VIRTUAL.isInstance(Thread.currentThread());
    private boolean isBound;
    private int calls;

    private TraceContext() {
    }

    private static Class<?> classOfVirtualThreads() {
        try {
            return Class.forName("java.lang.BaseVirtualThread");
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    /** That of the calling thread, which alone may use it. To keep it saves the search for it. */
    public static TraceContext current() {
        return OF_THREAD.get();
    }

    /** Sets what the calling thread works for: the 16 bytes of the trace's id, in order, and the 8 of the span's. */
    public static void set(long traceHigh, long traceLow, long spanId) {
        current().begin(traceHigh, traceLow, spanId);
    }

    /** The calling thread works for none. */
    public static void clear() {
        current().end();
    }

    /** As {@link #set}, for the thread that this object is of. */
    public void begin(long traceHigh, long traceLow, long spanId) {
        if (!isBound && !bind())
            return;
        record.put(VALID, (byte) 0);
        order.lazySet(0);
        record.putLong(0, traceHigh);
        record.putLong(Long.BYTES, traceLow);
        record.putLong(SPAN, spanId);
        order.lazySet(1);
        record.put(VALID, (byte) 1);
    }

    /** As {@link #clear}, for the thread that this object is of. */
    public void end() {
        record.put(VALID, (byte) 0);
    }

    // The library may come later.
    private boolean bind() {
        if (isVirtual || calls++ % TRIES_EACH != 0)
            return false;
        try {
            bind(record);
            isBound = true;
        } catch (UnsatisfiedLinkError e) {
            return false;
        }
        return true;
    }

    private static native void bind(ByteBuffer record);
}
