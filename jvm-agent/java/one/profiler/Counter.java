// SPDX-License-Identifier: MIT
package one.profiler;

/** What the numbers of a report are. */
public enum Counter {
    /** Samples. */
    SAMPLES,
    /** Nanoseconds, bytes or calls, as the event counts. */
    TOTAL
}
