// SPDX-License-Identifier: MIT
// Work of Go's runtime on its own stack, for goroutines of main.main: allocation, the clock, channels.
package main

import (
	"fmt"
	"runtime"
	"time"
)

type node struct {
	left, right *node
	data        [64]byte
}

//go:noinline
func allocate(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: allocate(depth - 1), right: allocate(depth - 1)}
}

//go:noinline
func readClock() (last time.Time) {
	for i := 0; i < 20000; i++ {
		last = time.Now()
	}
	return last
}

//go:noinline
func wakeOthers() (sum int) {
	numbers := make(chan int)
	go func() {
		for i := 0; i < 1000; i++ {
			numbers <- i
		}
		close(numbers)
	}()
	for number := range numbers {
		sum += number
	}
	return sum
}

func main() {
	fmt.Println("READY")
	for {
		allocate(12)
		readClock()
		wakeOthers()
		runtime.GC()
	}
}
