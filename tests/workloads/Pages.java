// SPDX-License-Identifier: MIT
package workload;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Pages ROUNDS: in each round one() takes 4 MB of new memory outside the heap, which Java clears, and three() three
 * times as much. Nothing is freed. Where the system gives pages of 4 kB, a round has 4096 page faults.
 */
public final class Pages {
    private static final int QUARTER = 4 << 20;
    private static final List<ByteBuffer> kept = new ArrayList<>();

    private static void one() {
        kept.add(ByteBuffer.allocateDirect(QUARTER));
    }

    private static void three() {
        kept.add(ByteBuffer.allocateDirect(3 * QUARTER));
    }

    public static void main(String[] args) throws Exception {
        Workload.ready();
        for (long i = Workload.argument(args, 0, 10); i > 0; i--) {
            one();
            three();
        }
        Workload.done();
    }
}
