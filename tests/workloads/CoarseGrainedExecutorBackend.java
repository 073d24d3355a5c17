// SPDX-License-Identifier: MIT
package org.apache.spark.executor;

/** What an executor of Apache Spark looks like from outside, whatever its arguments say: workload.Locks. */
public final class CoarseGrainedExecutorBackend {
    public static void main(String[] args) throws Exception {
        workload.Locks.main(new String[0]);
    }
}
