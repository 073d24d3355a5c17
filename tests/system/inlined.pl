#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# inlined.pl PROFILE [TRUTH...]: judges the inlined frames of a profile. All are collapsed files with threads and types
# of frames (-t -a), of duet or async-profiler. TRUTH is of the same program with -XX:+DebugNonSafepoints.
# Prints one "FIGURE VALUE" a line. Values are percent unless told otherwise. A call without debug information is a leaf
# call: Java code calls a stub or a function of the JVM.
#
# Of all samples that have Java frames:
#   samples      their number
#   marked       those with a frame [inlined?]
# Of those in a loop of workload.Leafs or workload.Intrinsics, of which it is known what may stand above its method:
#   known        their number
#   lacking      those whose method is missing, or is one that does not do such work
#   silent       the same, without those that are marked
#   leaf_calls   the number of those in leaf calls
#   leaf_lacking, leaf_silent   the same of these
#   of NAME      those in the method NAME
# Against TRUTH:
#   difference   sum of the differences of the total shares of all methods, in points
#   unseen       those with two frames next to each other, from the leaf to the caller of the innermost compiled code,
#                that are nowhere next to each other in TRUTH
#   leaf_unseen  the same, of those in leaf calls
#   silent_unseen, leaf_silent_unseen   the same, without those that are marked
# The stacks at fault go to stderr, the most frequent first.
use strict;
use warnings;

my %kinds = (
	handler => 'copyRows trig', sums => 'crc32 adler aes bigs', strings => 'find order same concat',
	arrays => 'fill equal differ copy overlap objects vector', maths => 'pow log sine round rest',
	memory => 'small large store buffer', locks => 'locked');
# Leaf calls that only some of these methods make.
my @makers = (
	['arraycopy', 'copyRows|concat|copy|overlap|objects|small|large|buffer|crc32|adler|aes|bigs'],
	['CRC32', 'crc32'], ['Adler', 'adler'], ['AES|aes', 'aes'], ['multiplyTo|squareTo', 'bigs'],
	['dpow|libmPow', 'pow'], ['dlog|libm[Ll]og', 'log'], ['dsin|dexp|libmSin|libmExp', 'trig|sine'],
	['drem|fmod', 'rest'], ['[a-z]_fill', 'fill|small|large|concat'], ['G1Barrier|g1_', 'store|objects'],
	['[Mm]onitor|_lock|unlock', 'locked']);
my $typed = qr{_\[[01ij]\]$};
my %faults;

# Returns {weight, call: name of the leaf call or '', frames: Java frames from the innermost, marked}.
sub stack_of {
	my ($text, $weight) = $_[0] =~ /^(.*) (\d+)$/ or return;
	my @frames = split /;/, $text;
	return if $text =~ /;__restore_rt/; # another profiler's signal handler runs
	my ($call, @java) = ('');
	for my $frame (reverse @frames) {
		if ($frame =~ $typed) {
			push @java, $frame;
		} elsif (!@java && $frame !~ /_\[k\]$|^\[|^Deoptimization::|:counter_overflow$/) { # of any code
			$call = $frame;
		}
	}
	return unless @java;
	return {weight => $weight, call => $call, frames => \@java, marked => scalar($text =~ /\[inlined\?\]/)};
}

sub stacks_of {
	open(my $in, '<', $_[0]) or die "$_[0]: $!\n";
	return map { chomp; stack_of($_) } <$in>;
}

# Without its type, and without the address in the name of a hidden class.
sub bare { return $_[0] =~ s/$typed//r =~ s/[.\/+]0x[0-9a-f]+//r }

sub percent { return $_[1] ? sprintf('%.3f', 100 * $_[0] / $_[1]) : '-' }

# Prints the share of the stacks that are at fault, and of those without a mark, and the same of those in leaf calls.
sub print_faults {
	my ($lacking, $silent, $fault_of, @stacks) = @_;
	my @sums = ([0, 0, 0], [0, 0, 0]); # of all, of leaf calls: samples, at fault, without a mark
	for my $stack (@stacks) {
		my $fault = $fault_of->($stack);
		for my $sum (@sums[0 .. ($stack->{call} ne '')]) {
			$sum->[0] += $stack->{weight};
			$sum->[1] += $stack->{weight} if $fault;
			$sum->[2] += $stack->{weight} if $fault && !$stack->{marked};
		}
		$faults{($stack->{marked} ? 'marked ' : '') . $fault} += $stack->{weight} if $fault;
	}
	print "leaf_calls $sums[1][0]\n";
	for (['', $sums[0]], ['leaf_', $sums[1]]) {
		my ($of, $sum) = @$_;
		print "$of$lacking ", percent($sum->[1], $sum->[0]), "\n$of$silent ", percent($sum->[2], $sum->[0]), "\n";
	}
}

# ---- programs that are known ----

# Returns the loop's method and the frame above it; nothing if there is none, or if the program's clock runs.
sub loop_of {
	my ($stack) = @_;
	my $frames = $stack->{frames};
	for my $at (0 .. $#$frames) {
		my ($method) = $frames->[$at] =~ m{^workload/(?:Leafs|Intrinsics)\.(\w+)_\[[ij1]\]$};
		next unless $method && $kinds{$method};
		my $above = $at ? bare($frames->[$at - 1]) : '';
		return if $above =~ /Intrinsics\.note$/ || "$above$stack->{call}" =~ /nanoTime|javaTimeNanos|clock_gettime/;
		return ($method, $above);
	}
	return;
}

# What is wrong with a stack in a loop, or ''. The loop's own code has no other leaf than itself.
sub known_fault {
	my ($stack) = @_;
	my ($method, $above) = loop_of($stack);
	my ($kind) = $above =~ m{^workload/\w+\.(\w+)$};
	return $stack->{call} eq '' ? '' : "$method;$stack->{call}" if $above eq '';
	return "$method;$above" unless $kind && " $kinds{$method} " =~ / $kind /;
	my @known = grep { $stack->{call} =~ /$_->[0]/ } @makers;
	return @known && !grep({ $kind =~ /^(?:$_->[1])$/ } @known) ? "$method;$kind;$stack->{call}" : '';
}

sub judge_known {
	my @stacks = grep { (loop_of($_))[0] } @_;
	my ($sum, %of) = (0);
	return unless @stacks;
	for (@stacks) {
		my ($kind) = (loop_of($_))[1] =~ /\.(\w+)$/;
		$sum += $_->{weight};
		$of{$kind} += $_->{weight} if $kind;
	}
	print "known $sum\n";
	print_faults('lacking', 'silent', \&known_fault, @stacks);
	printf "of %s %.2f\n", $_, 100 * $of{$_} / $sum for sort keys %of;
}

# ---- against the truth ----

sub totals {
	my ($sum, %total) = (0);
	for my $stack (@_) {
		my %seen;
		$sum += $stack->{weight};
		$total{$_} += $stack->{weight} for grep { !$seen{$_}++ } map { bare($_) } @{$stack->{frames}};
	}
	$total{$_} *= 100 / $sum for keys %total;
	return \%total;
}

# From the leaf call to the caller of the innermost compiled code, each with its callee.
sub pairs {
	my ($stack) = @_;
	my $frames = $stack->{frames};
	my $last = 0;
	$last++ while $last < $#$frames && $frames->[$last] =~ /_\[i\]$/;
	$last++ if $last < $#$frames;
	my @chain = ($stack->{call} ne '' ? $stack->{call} : (), map { bare($_) } @$frames[0 .. $last]);
	return map { "$chain[$_];$chain[$_ - 1]" } 1 .. $#chain;
}

sub judge_against {
	my ($test, @truth) = @_;
	my ($mine, $true, $difference) = (totals(@$test), totals(@truth), 0);
	my %known = map { $_ => 1 } map { pairs($_) } @truth;
	$difference += abs(($mine->{$_} // 0) - ($true->{$_} // 0)) for keys %{{%$mine, %$true}};
	printf "difference %.2f\n", $difference;
	print_faults('unseen', 'silent_unseen', sub { return (grep { !$known{$_} } pairs($_[0]))[0] // '' }, @$test);
}

my ($profile, @truths) = @ARGV;
my @test = stacks_of($profile);
my ($all, $marked) = (0, 0);
for (@test) {
	$all += $_->{weight};
	$marked += $_->{weight} if $_->{marked};
}
die "$profile has no samples with Java frames\n" unless $all;
printf "samples %d\nmarked %.3f\n", $all, 100 * $marked / $all;
judge_known(@test);
judge_against(\@test, map { stacks_of($_) } @truths) if @truths;
print STDERR "$faults{$_} $_\n" for sort { $faults{$b} <=> $faults{$a} || $a cmp $b } keys %faults;
