// SPDX-License-Identifier: MIT
package shop;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.zip.Deflater;

/**
 * Demo [SECONDS]: a small shop whose threads show each kind of frame in a flame graph: Java (pricing), native code
 * (compressed archives), the kernel (the journal on disk), allocation (carts) and contended locks (the till).
 */
public final class Demo {
    public static void main(String[] args) throws InterruptedException {
        long seconds = args.length > 0 ? Long.parseLong(args[0]) : Long.MAX_VALUE / 1000;
        Catalog catalog = new Catalog(5_000);
        Till till = new Till();
        start("pricing", new Pricing(catalog));
        start("archiver", new Archiver());
        start("journal", new Journal());
        start("carts", new Carts(catalog));
        for (int i = 1; i <= 3; i++)
            start("cashier-" + i, new Cashier(till));
        System.out.println("READY");
        System.out.flush();
        Thread.sleep(seconds * 1000);
    }

    private static void start(String name, Worker worker) {
        Thread thread = new Thread(worker, name);
        thread.setDaemon(true);
        thread.start();
    }
}

/**
 * Works in bursts, and rests five times as long: seven workers use little more than a CPU together. Of a call that took
 * long, most counts as waiting for a CPU, so that they use what they can get of a busy machine.
 */
abstract class Worker implements Runnable {
    private static final int BURST_NS = 30_000_000, CALL_NS = 5_000_000;

    @Override
    public void run() {
        try {
            for (;;) {
                long now = System.nanoTime(), end = now + BURST_NS, worked = 0;
                while (now < end) {
                    long before = now;
                    work();
                    now = System.nanoTime();
                    worked += Math.min(now - before, CALL_NS);
                }
                Thread.sleep(5 * worked / 1_000_000);
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    abstract void work() throws IOException;
}

final class Product {
    final String name;
    final String category;
    final double price;

    Product(String name, String category, double price) {
        this.name = name;
        this.category = category;
        this.price = price;
    }
}

final class Catalog {
    private final List<Product> products = new ArrayList<>();

    Catalog(int size) {
        Random random = new Random(42);
        for (int i = 0; i < size; i++)
            products.add(new Product("product-" + i, "category-" + random.nextInt(40),
                    1 + random.nextInt(10_000) / 100.0));
    }

    List<Product> products() {
        return products;
    }

    Product pick(Random random) {
        return products.get(random.nextInt(products.size()));
    }
}

/** Java: streams, maps, sorting. */
final class Pricing extends Worker {
    static volatile Object result;
    private final Catalog catalog;

    Pricing(Catalog catalog) {
        this.catalog = catalog;
    }

    @Override
    void work() {
        result = cheapest(averages());
    }

    private Map<String, Double> averages() {
        return catalog.products().stream()
            .collect(Collectors.groupingBy(product -> product.category, Collectors.averagingDouble(this::discounted)));
    }

    private double discounted(Product product) {
        double price = product.price;
        for (int year = 1; year < 12; year++)
            price -= price * Math.sin(year) / (10 + year);
        return price;
    }

    private static List<String> cheapest(Map<String, Double> averages) {
        return averages.entrySet().stream()
            .sorted(Comparator.comparingDouble(Map.Entry::getValue))
            .limit(10).map(Map.Entry::getKey).collect(Collectors.toList());
    }
}

/** Native code: zlib. */
final class Archiver extends Worker {
    private final byte[] orders = new byte[256 << 10];
    private final byte[] packed = new byte[256 << 10];

    Archiver() {
        Random random = new Random(7);
        for (int i = 0; i < orders.length; i++)
            orders[i] = (byte) "product;amount;price\n".charAt(random.nextInt(21));
    }

    @Override
    void work() {
        compress(orders, packed);
    }

    private static int compress(byte[] from, byte[] to) {
        Deflater deflater = new Deflater(Deflater.BEST_SPEED);
        deflater.setInput(from);
        deflater.finish();
        int length = deflater.deflate(to);
        deflater.end();
        return length;
    }
}

/** The kernel: reads and writes of a file. */
final class Journal extends Worker {
    private final byte[] entry = new byte[16 << 10];
    private RandomAccessFile file;

    @Override
    void work() throws IOException {
        if (file == null)
            file = open();
        append();
        replay();
    }

    /** Unlinked at once: nothing is left behind, however the demo ends. */
    private static RandomAccessFile open() throws IOException {
        File path = File.createTempFile("duet-demo", ".journal");
        RandomAccessFile file = new RandomAccessFile(path, "rw");
        if (!path.delete())
            path.deleteOnExit();
        return file;
    }

    private void append() throws IOException {
        file.seek(0);
        for (int i = 0; i < 64; i++)
            file.write(entry);
    }

    private void replay() throws IOException {
        file.seek(0);
        for (int i = 0; i < 64; i++)
            file.readFully(entry);
    }
}

/** Allocation: short-lived objects, and so the garbage collector. */
final class Carts extends Worker {
    static volatile Object last;
    private final Catalog catalog;
    private final Random random = new Random(1);

    Carts(Catalog catalog) {
        this.catalog = catalog;
    }

    @Override
    void work() {
        Map<String, List<Product>> cart = new HashMap<>();
        for (int i = 0; i < 200; i++) {
            Product product = catalog.pick(random);
            cart.computeIfAbsent(product.category, category -> new ArrayList<>()).add(product);
        }
        last = receipt(cart);
    }

    private static String receipt(Map<String, List<Product>> cart) {
        StringBuilder text = new StringBuilder();
        cart.forEach((category, products) -> {
            text.append(category).append('\n');
            for (Product product : products)
                text.append("  ").append(product.name).append(' ').append(product.price).append('\n');
        });
        return text.toString();
    }
}

final class Till {
    private final Map<Integer, Long> takings = new HashMap<>();

    synchronized long take(int shop, long cents) {
        long sum = 0;
        takings.merge(shop, cents, Long::sum);
        for (long value : takings.values())
            sum += value;
        return sum;
    }
}

/** Lock contention: three cashiers, one till. */
final class Cashier extends Worker {
    static volatile long total;
    private final Till till;
    private final Random random = new Random();

    Cashier(Till till) {
        this.till = till;
    }

    @Override
    void work() {
        total = till.take(random.nextInt(500), 1 + random.nextInt(100));
    }
}
