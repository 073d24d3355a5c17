/* SPDX-License-Identifier: MIT */
#include "join/splice.h"

#include <errno.h>
#include <string.h>

#include "duet_jvm.h"
#include "profile/profile.h"

#define MAPS_AGE_NS 1000000000ull /* least age of mappings before they are read again */
#define ACC_NATIVE 0x0100 /* JVM specification, table 4.6-A */

#define MAX_FRAMES 65536 /* DUET_MAX_WALK frames with inlined ones; also limits frames that an agent invents */

static const char truncated[] = "[truncated]";
static const char missing_inlined[] = "[inlined?]"; /* who called, the compiler has not recorded */

/* The state of splice_stack(). */
struct splicing {
	struct splice *out;
	struct process *process; /* its mappings are read again when a frame is outside all of them */
	const struct jvm *jvm;
	const uint64_t *user; /* user frames, leaf first; [0] is a pc unless is_called, the rest are return addresses */
	bool is_called; /* DUET_SAMPLE_CALLED */
	uint32_t first; /* user frames before it are not shown */
	uint32_t user_depth;
	struct jvm_moment then;
	const uint32_t *ids; /* of the user frames, or NULL */
	const struct jvm_code *code; /* result of the last lookup */
	uint64_t code_pc; /* key of the last lookup; 0 = none yet */
	uint32_t code_id; /* id of the last lookup */
	bool is_whole; /* DUET_SAMPLE_USER_COMPLETE */
	bool has_gap; /* frames after the first DUET_LEAF_FRAMES user frames were left out */
	const struct duet_java_frame *other; /* AsyncGetCallTrace's frames to compare with, or NULL */
	uint32_t other_depth;
	uint32_t other_next; /* index of the frame to compare next */
	bool other_is_cut; /* the thread has more Java frames than `other` */
	bool after_call_stub; /* a call stub was passed since the last comparison */
};

const char *splice_failure_mark(int32_t status)
{
	static const char *const marks[] = {
		[1] = "[no_class_load]",    [2] = "[GC_active]",
		[3] = "[unknown_not_Java]", [4] = "[not_walkable_not_Java]",
		[5] = "[unknown_Java]",	    [6] = "[not_walkable_Java]",
		[7] = "[unknown_state]",    [8] = "[thread_exit]",
		[9] = "[deoptimization]",   [10] = "[safepoint]",
	};

	if (status >= 0)
		return NULL;
	if (status < -10)
		return "[unknown_failure]";
	return marks[-status];
}

static const char *unjoined_mark(enum join_outcome outcome, const struct duet_sample *sample)
{
	static const char *const no_signal[DUET_NO_SIGNAL_MAX] = {
		[DUET_NO_SIGNAL_NONE] = "[not_signalled]",
		[DUET_NO_SIGNAL_SYSCALL] = "[not_signalled_syscall]",
		[DUET_NO_SIGNAL_BLOCKED] = "[not_signalled_blocked]",
		[DUET_NO_SIGNAL_STOLEN] = "[not_signalled_handler_stolen]",
		[DUET_NO_SIGNAL_EXITING] = "[not_signalled_exiting]",
		[DUET_NO_SIGNAL_REFUSED] = "[not_signalled_refused]",
		[DUET_NO_SIGNAL_UNWANTED] = "[not_signalled_never]",
		[DUET_NO_SIGNAL_EVENT] = "[not_walked]",
	};

	switch (outcome) {
	case JOIN_NOT_SIGNALLED:
		return no_signal[sample->no_signal < DUET_NO_SIGNAL_MAX ? sample->no_signal : 0];
	case JOIN_NO_RECORD:
		return "[no_agent_record]";
	case JOIN_MISMATCH:
		return "[pc_mismatch]";
	default:
		return NULL;
	}
}

static int push(struct splicing *s, struct splice_frame frame)
{
	if (s->out->frames.len >= MAX_FRAMES)
		return 0;
	if (s->out->frames.len == MAX_FRAMES - 1)
		frame = (struct splice_frame){.kind = SPLICE_MARK, .mark = truncated};
	return vec_push(&s->out->frames, frame);
}

static int push_mark(struct splicing *s, const char *mark)
{
	return mark ? push(s, (struct splice_frame){.kind = SPLICE_MARK, .mark = mark}) : 0;
}

static int push_state(struct splicing *s, const char *state)
{
	return push(s, (struct splice_frame){.kind = SPLICE_STATE, .mark = state});
}

static int push_kernel(struct splicing *s, const struct duet_sample *sample)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < sample->kernel_depth; i++)
		err = push(s, (struct splice_frame){
				      .kind = SPLICE_KERNEL, .address = sample->stack[i], .is_return = i > 0});
	return err;
}

static bool is_return(const struct splicing *s, uint32_t index)
{
	return index > 0 || s->is_called;
}

static int push_native(struct splicing *s, uint32_t index)
{
	return push(s, (struct splice_frame){
			       .kind = SPLICE_NATIVE, .address = s->user[index], .is_return = is_return(s, index)});
}

static int push_java(struct splicing *s, const struct duet_java_frame *frame, enum splice_kind kind)
{
	bool is_native = frame->bci == DUET_BCI_NATIVE;

	return push(s, (struct splice_frame){.kind = is_native ? SPLICE_JAVA_NATIVE : kind,
					     .method = frame->method,
					     .check = frame->check,
					     .bci = frame->bci,
					     .is_interpreted = is_native && kind == SPLICE_INTERPRETED});
}

static bool is_interpreted(const struct splicing *s, uint32_t index)
{
	return s->ids && s->ids[index] & DUET_ID_INTERPRETED;
}

static bool in_jvm_code(const struct splicing *s, uint32_t index)
{
	return s->jvm && (is_interpreted(s, index) || jvm_owns_pc(s->jvm, s->user[index]));
}

/* A return address may be the first byte after its code; the byte before it belongs to the call. */
static struct duet_want code_key(const struct splicing *s, uint32_t index)
{
	return (struct duet_want){
		.key = s->user[index] - is_return(s, index),
		.id = s->ids ? s->ids[index] : 0,
		.kind = DUET_WANT_CODE,
		.unloads = (uint32_t)s->then.unloads,
	};
}

/* Returns the code of a frame. If it is unknown, returns NULL, and adds it to the wants unless it was unloaded. */
static const struct jvm_code *code_of(struct splicing *s, uint32_t index)
{
	struct duet_want want = code_key(s, index);
	uint32_t id = want.id;
	uint64_t pc = want.key;

	if (is_interpreted(s, index))
		return NULL;
	if (pc != s->code_pc || id != s->code_id) { /* frames of a recursion have the same pc */
		s->code = jvm_code_at(s->jvm, pc, s->then.time_ns, id);
		s->code_pc = pc;
		s->code_id = id;
		if (!s->code && !jvm_is_gone(s->jvm, &want, s->then))
			(void)vec_push(&s->out->wants, want); /* out of memory: the code is not requested */
	}
	return s->code;
}

/*
 * A walk by frame pointer through code that keeps none soon reads data as frames. An address that is not in mapped code
 * is such noise, and so are all frames below it. In a walk by rows alone, it is code that we have not seen mapped yet.
 */
static bool is_noise(struct splicing *s, uint32_t index)
{
	uint64_t address = s->user[index];

	if (!index || s->is_whole || in_jvm_code(s, index) || maps_find(&s->process->maps, address))
		return false;
	process_refresh_maps(s->process, s->then.time_ns, MAPS_AGE_NS);
	return !maps_find(&s->process->maps, address);
}

/*
 * A witness that cannot identify a method does not contradict the other. Without a jmethodID, AsyncGetCallTrace reports
 * 0, and the walk has the method's address (DUET_METHOD_BARE).
 */
static bool same_method(uint64_t walked, uint64_t other)
{
	return walked == other || !walked || !other || walked & DUET_METHOD_BARE;
}

/*
 * Compares the byte code index with that of one of the other witness's frames. The leaf's are not compared: where a
 * thread is interrupted, AsyncGetCallTrace takes the debug information after pc, or what the interpreter has saved
 * before.
 */
static void note_bci(struct splicing *s, uint32_t index, int32_t bci)
{
	int32_t its = s->other[index].bci;
	enum alike bcis = bci == its ? ALIKE_AGREED : ALIKE_DISAGREED;

	if (index && bci >= 0 && its >= 0 && s->out->verdict.bcis < bcis)
		s->out->verdict.bcis = bcis;
}

/* True if the other witness's next frame has this method, or it may have ended where native code called Java. */
static bool confirm(struct splicing *s, const struct duet_java_frame *frame)
{
	if (!s->other || (s->other_next == s->other_depth && (s->after_call_stub || s->other_is_cut)))
		return true;
	s->after_call_stub = false;
	if (s->other_next == s->other_depth || !same_method(frame->method, s->other[s->other_next].method))
		return false;
	note_bci(s, s->other_next, frame->bci);
	s->other_next++;
	return true;
}

static int push_confirmed(struct splicing *s, const struct duet_java_frame *frame, enum splice_kind kind)
{
	return confirm(s, frame) ? push_java(s, frame, kind) : -EILSEQ;
}

static bool will_name(const struct splicing *s, uint64_t method)
{
	for (uint32_t i = s->other_next; i < s->other_depth; i++)
		if (s->other[i].method == method)
			return true;
	return false;
}

/* Compiled code without debug information for this pc: only the other witness knows what was inlined there. */
static int push_compiled_bare(struct splicing *s, const struct jvm_code *code, uint32_t flags)
{
	const struct jvm_method *method = jvm_method(s->jvm, code->method, s->then);
	struct duet_java_frame itself = {.method = code->method, .bci = -1};
	bool is_named = s->other && will_name(s, code->method);
	int err = 0;

	if (method && method->modifiers & ACC_NATIVE)
		itself.bci = DUET_BCI_NATIVE;
	else if (!is_named && (method || code->inlining) && flags & DUET_PC_MISSING)
		err = push_mark(s, missing_inlined);
	while (!err && is_named && s->other[s->other_next].method != code->method)
		err = push_java(s, &s->other[s->other_next++], SPLICE_INLINED);
	if (err || !confirm(s, &itself))
		return err ? err : -EILSEQ;
	if (is_named)
		itself.bci = s->other[s->other_next - 1].bci;
	return push_java(s, &itself, SPLICE_COMPILED);
}

/*
 * For the topmost compiled code, AsyncGetCallTrace uses the debug information that follows pc. If pc is a return
 * address, or if the compiler has not recorded where the scope changes, these may be the methods inlined at another
 * place, and only the method itself can be compared.
 */
static bool confirm_topmost(struct splicing *s, const struct jvm_code *code, const struct duet_java_frame *frames,
			    uint32_t depth, bool is_exact)
{
	uint32_t next = 0;

	while (next < depth && next < s->other_depth && same_method(frames[next].method, s->other[next].method))
		next++;
	for (uint32_t i = 0; is_exact && i < next; i++)
		note_bci(s, i, frames[i].bci);
	if (next < depth && is_exact)
		return false;
	if (next < depth) {
		for (next = 0; next < s->other_depth && !same_method(code->method, s->other[next].method);)
			next++;
		next++;
	}
	s->other_next = next;
	return next <= s->other_depth;
}

/* One frame with two names is enough to count the stack. */
static void note_names(struct splicing *s, enum alike names)
{
	if (s->out->verdict.names < names)
		s->out->verdict.names = names;
}

static void note_estimated(struct splicing *s, uint32_t flags)
{
	s->out->verdict.is_estimated |= flags & DUET_PC_ESTIMATED;
	s->out->verdict.is_unrecorded |= flags & DUET_PC_ESTIMATED && !(flags & DUET_PC_EXACT);
}

static int push_compiled_code(struct splicing *s, uint32_t index, const struct jvm_code *code)
{
	struct duet_java_frame frames[JVM_INLINING_DEPTH];
	uint32_t flags, depth = jvm_code_frames(code, s->user[index], is_return(s, index), frames, &flags);
	bool topmost = s->other && !s->other_next;
	bool is_exact = (flags & (DUET_PC_EXACT | DUET_PC_ESTIMATED)) == DUET_PC_EXACT;
	int err = 0;

	note_estimated(s, flags);
	if (!depth)
		return push_compiled_bare(s, code, flags);
	note_names(s, alike_frames(s->jvm, code, s->user[index], is_return(s, index), s->then, frames, depth));
	if (topmost && !confirm_topmost(s, code, frames, depth, is_exact && !is_return(s, index)))
		return -EILSEQ;
	if (flags & DUET_PC_MISSING)
		err = push_mark(s, missing_inlined);
	for (uint32_t i = 0; !err && i < depth; i++) {
		enum splice_kind kind = i + 1 < depth ? SPLICE_INLINED : SPLICE_COMPILED;

		err = topmost ? push_java(s, &frames[i], kind) : push_confirmed(s, &frames[i], kind);
	}
	return err;
}

/* Shows a stub only as the leaf, which works for the top Java frame (an array copy, say); no interpreter. */
static int push_stub(struct splicing *s, uint32_t index, const struct jvm_code *code)
{
	if (index > 0 || !code->stub_name || jvm_is_interpreter(s->jvm, code))
		return 0;
	return push(s, (struct splice_frame){.kind = SPLICE_STUB, .text = code->stub_name, .address = s->user[index]});
}

/* True if AsyncGetCallTrace has missed the topmost method because its frame is not complete yet. */
static bool is_entered_unseen(const struct splicing *s, uint32_t index, const struct duet_java_frame *frame)
{
	return !index && frame->bci <= 0 && s->other && s->other_depth &&
	       !same_method(frame->method, s->other[0].method);
}

static int push_interpreted(struct splicing *s, uint32_t index)
{
	uint32_t bci = s->ids[index] & DUET_ID_BCI;
	struct duet_java_frame frame = {.method = s->user[index],
					.bci = bci == DUET_ID_BCI ? DUET_BCI_NATIVE : (int32_t)bci,
					.check = s->ids[index] >> DUET_ID_CHECK_SHIFT & DUET_ID_CHECK};

	note_names(s, alike_interpreted(s->jvm, frame.method, frame.bci, s->then));
	return is_entered_unseen(s, index, &frame) ? push_java(s, &frame, SPLICE_INTERPRETED)
						   : push_confirmed(s, &frame, SPLICE_INTERPRETED);
}

static int push_missing_code(struct splicing *s, uint32_t index)
{
	struct duet_want want = code_key(s, index);

	s->out->verdict.is_missing_code = true;
	if (s->other)
		return -EILSEQ;
	return push_mark(s, jvm_is_gone(s->jvm, &want, s->then) ? "[unloaded_code]" : "[unknown_code]");
}

static int push_jvm_code(struct splicing *s, uint32_t index)
{
	const struct jvm_code *code;

	if (is_interpreted(s, index))
		return push_interpreted(s, index);
	if (s->ids && s->ids[index] == DUET_ID_ON_HEAP)
		return push_mark(s, "[frames_on_heap]");
	if (s->ids && s->ids[index] == DUET_ID_NOT_FILLED) /* one mark for several such frames in a row */
		return index && s->ids[index - 1] == DUET_ID_NOT_FILLED ? 0 : push_mark(s, "[deoptimization]");
	s->after_call_stub |= jvm_is_call_stub(s->jvm, s->user[index]);
	if (jvm_is_call_stub(s->jvm, s->user[index]))
		return 0;
	code = code_of(s, index);
	if (!code)
		return push_missing_code(s, index);
	return code->method ? push_compiled_code(s, index, code) : push_stub(s, index, code);
}

/* Marks frames that were left out. Which ones is unknown, so no more frames are compared. */
static int push_gap(struct splicing *s)
{
	s->other_next = s->other_depth;
	s->other_is_cut = true;
	return push_mark(s, truncated);
}

static int push_physical(struct splicing *s)
{
	int err = 0;

	for (uint32_t i = s->first; !err && i < s->user_depth && !is_noise(s, i); i++) {
		if (i == DUET_LEAF_FRAMES && s->has_gap)
			err = push_gap(s);
		if (!err)
			err = in_jvm_code(s, i) ? push_jvm_code(s, i) : push_native(s, i);
	}
	return err;
}

/* Pushes the frames down to the first one in JVM code, and stores its index. The Java half follows them. */
static int push_native_above(struct splicing *s, uint32_t *ret_java_index)
{
	uint32_t i = 0;
	int err = 0;

	for (; !err && i < s->user_depth && !in_jvm_code(s, i) && !is_noise(s, i); i++)
		err = push_native(s, i);
	*ret_java_index = i < s->user_depth && in_jvm_code(s, i) ? i : UINT32_MAX;
	return err;
}

/*
 * Pushes the native frames below the call that had entered Java. They are known if the walk has reached the thread's
 * entry, even if it could not follow the frames above: the JVM's layout had not arrived, or a library had no rows yet.
 */
static int push_native_below(struct splicing *s, const struct duet_sample *sample)
{
	uint32_t below = s->user_depth;
	int err = 0;

	if (sample->walk_end != DUET_WALK_ENTRY)
		return 0;
	while (below && !in_jvm_code(s, below - 1))
		below--;
	if (!below || !jvm_is_call_stub(s->jvm, s->user[below - 1]))
		return 0;
	for (; !err && below < s->user_depth; below++)
		err = push_native(s, below);
	return err;
}

/* Returns how many of the leaf frames belong to the compiled code at `index`. */
static uint32_t leaf_compiled_depth(struct splicing *s, uint32_t index, const struct duet_java_frame *frames,
				    uint32_t depth)
{
	const struct jvm_code *code = index == UINT32_MAX ? NULL : code_of(s, index);
	struct duet_java_frame walked[JVM_INLINING_DEPTH];
	uint32_t inlined, flags;

	if (!code || !code->method)
		return 0;
	inlined = jvm_code_frames(code, s->user[index], is_return(s, index), walked, &flags);
	note_estimated(s, flags);
	if (inlined && inlined <= depth && frames[inlined - 1].method == code->method)
		return inlined;
	for (uint32_t i = 0; i < depth && i < 64; i++)
		if (frames[i].method == code->method)
			return i + 1;
	return 0;
}

static int push_compiled_group(struct splicing *s, const struct duet_java_frame *frames, uint32_t count)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++)
		err = push_java(s, &frames[i], i + 1 < count ? SPLICE_INLINED : SPLICE_COMPILED);
	return err;
}

static int push_java_frames(struct splicing *s, uint32_t leaf_index, const struct duet_java_frame *frames,
			    uint32_t depth)
{
	uint32_t i = leaf_compiled_depth(s, leaf_index, frames, depth);
	int err = push_compiled_group(s, frames, i);

	while (!err && i < depth) {
		uint32_t group = s->jvm && frames[i].bci >= 0 ? jvm_match_compiled(s->jvm, frames + i, depth - i) : 0;

		err = group ? push_compiled_group(s, frames + i, group) : push_java(s, &frames[i], SPLICE_INTERPRETED);
		i += group ? group : 1;
	}
	return err;
}

static int push_leaf_stub(struct splicing *s, uint32_t index)
{
	const struct jvm_code *code = index == 0 ? code_of(s, index) : NULL;

	return code && !code->method ? push_stub(s, index, code) : 0;
}

/* Pushes the walk if the other witness confirms each frame. Else *ret_agreed stays false, and nothing is pushed. */
static int push_agreed(struct splicing *s, const struct duet_java_frame *frames, uint32_t depth, bool *ret_agreed)
{
	size_t before = s->out->frames.len;
	int err;

	s->other = frames;
	s->other_depth = depth;
	err = push_physical(s);
	s->other = NULL;
	if (err == -EILSEQ)
		err = 0;
	else
		*ret_agreed = !err && s->other_next == depth && !s->out->verdict.is_missing_code;
	if (!*ret_agreed) {
		s->out->frames.len = before;
		s->out->verdict.bcis = ALIKE_ALONE;
	}
	return err;
}

/*
 * Returns true if the walk, whose frames begin at `first`, has all of AsyncGetCallTrace's frames. The walk may have
 * more of them only where AsyncGetCallTrace is known to leave frames out: - the topmost frame, if it is not complete
 * yet; - the caller of the topmost frame, if the topmost method is in its first or last instructions; - the frames
 * below one that AsyncGetCallTrace cannot walk through. If the walk has a gap, nothing below it is compared.
 */
static bool saw_less(const struct splice *walk, size_t first, const struct duet_java_frame *frames, uint32_t depth)
{
	uint32_t next = 0;
	bool skipped = false;

	for (size_t i = first; i < walk->frames.len && next < depth; i++) {
		const struct splice_frame *frame = &walk->frames.items[i];

		if (frame->kind == SPLICE_MARK && frame->mark == truncated)
			return next > 0;
		if (!splice_is_java(frame->kind))
			continue;
		if (same_method(frame->method, frames[next].method)) {
			next++;
			continue;
		}
		if (next > 1 || skipped)
			return false;
		skipped = next > 0;
	}
	return depth && next == depth;
}

/* Pushes the walk if saw_less() says that nothing contradicts it. Otherwise *ret_keeps is false; nothing is pushed. */
static int push_undisputed(struct splicing *s, const struct duet_java_frame *frames, uint32_t depth, bool *ret_keeps)
{
	size_t before = s->out->frames.len;
	int err = push_physical(s);

	*ret_keeps = !err && !s->out->verdict.is_missing_code && saw_less(s->out, before, frames, depth);
	if (!*ret_keeps)
		s->out->frames.len = before;
	return err;
}

/* Compares both witnesses if the walk is whole. If they contradict each other, AsyncGetCallTrace's frames are used. */
static int push_java_half(struct splicing *s, const struct duet_sample *sample, const struct duet_java_sample *java,
			  const struct duet_java_frame *frames)
{
	bool is_complete = sample->flags & DUET_SAMPLE_USER_COMPLETE, agreed = false;
	uint32_t leaf_index;
	int err = 0;

	s->other_is_cut = java->flags & (DUET_JAVA_TRUNCATED | DUET_JAVA_MOUNTED);
	if (is_complete) {
		err = push_agreed(s, frames, java->java_depth, &agreed);
		if (!s->out->verdict.is_missing_code)
			s->out->verdict.witnesses = agreed ? SPLICE_AGREED : SPLICE_DISAGREED;
	}
	if (!err && s->out->verdict.witnesses == SPLICE_DISAGREED) {
		err = push_undisputed(s, frames, java->java_depth, &agreed);
		if (agreed)
			s->out->verdict.witnesses = SPLICE_SAW_LESS;
	}
	if (err || agreed)
		return err;
	err = push_native_above(s, &leaf_index);
	if (!err)
		err = push_leaf_stub(s, leaf_index);
	if (!err)
		err = push_java_frames(s, leaf_index, frames, java->java_depth);
	if (err)
		return err;
	return java->flags & DUET_JAVA_TRUNCATED ? push_mark(s, truncated) : push_native_below(s, sample);
}

/* Marks a stack whose walk ended before the thread's entry. */
static int push_cut(struct splicing *s, const struct duet_sample *sample, const char *mark)
{
	bool is_cut = s->user_depth && sample->walk_end > DUET_WALK_ENTRY;

	return push_mark(s, mark || !is_cut ? mark : truncated);
}

static int push_joined(struct splicing *s, const struct duet_sample *sample, const struct duet_java_sample *java)
{
	const struct duet_java_frame *frames = (const struct duet_java_frame *)(java + 1);
	int err;

	if (java->java_depth)
		return push_java_half(s, sample, java, frames);
	err = push_physical(s);
	if (err || sample->flags & DUET_SAMPLE_USER_COMPLETE)
		return err;
	return push_cut(s, sample, java->flags & DUET_JAVA_NO_THREAD ? NULL : splice_failure_mark(java->status));
}

/* Returns the index of the first frame of a Java method; 0 if there is none. */
static uint32_t first_java(const struct splicing *s)
{
	uint32_t i = 0;

	while (s->ids && i < s->user_depth && !s->ids[i])
		i++;
	return s->ids && i < s->user_depth ? i : 0;
}

int splice_stack(struct splice *splice, struct process *process, const struct jvm *jvm,
		 const struct duet_sample *sample, const struct duet_java_sample *java, enum join_outcome outcome)
{
	struct splicing s = {
		.out = splice,
		.process = process,
		.jvm = jvm,
		.user = sample->stack + sample->kernel_depth,
		.user_depth = sample->user_depth,
		.has_gap = sample->left_out != 0,
		.is_called = sample->flags & DUET_SAMPLE_CALLED,
		.is_whole = sample->flags & DUET_SAMPLE_USER_COMPLETE,
		.then = {sample->head.time_ns, sample->unloads},
	};
	int err;

	vec_clear(&splice->frames);
	vec_clear(&splice->wants);
	splice->verdict = (struct splice_verdict){0};
	if (sample->id_depth)
		s.ids = (const uint32_t *)(s.user + s.user_depth);
	if (sample->flags & DUET_SAMPLE_FOR_JAVA)
		s.first = first_java(&s);
	if (s.is_called && !s.user_depth && sample->flags & DUET_SAMPLE_USER_COMPLETE)
		return push_mark(&s, "[no_Java_frame]");
	if (outcome == JOIN_OWN)
		return push_state(&s, "[duet_agent]");
	err = push_kernel(&s, sample);
	if (!err && sample->walk_end == DUET_WALK_EXITING)
		return push_state(&s, "[exiting]");
	if (err)
		return err;
	if (java)
		return push_joined(&s, sample, java);
	err = push_physical(&s);
	return err ? err : push_cut(&s, sample, unjoined_mark(outcome, sample));
}

#define COMPILER_ROOTS 16 /* compile_method is the seventh frame from the root (JDK 8 to 25) */

/* Returns true for the function of a compiler that is called with a method. */
static bool is_compiler(struct symbols *symbols, struct process *process, const struct splice_frame *frame)
{
	struct symbol symbol;

	if (frame->kind != SPLICE_NATIVE)
		return false;
	symbols_user(symbols, process, frame->address, frame->is_return, &symbol);
	return duet_is_libjvm(symbol.module) && frame_name_compiles(symbol.name);
}

int splice_add_compiled(struct splice *splice, struct symbols *symbols, struct process *process,
			const struct duet_attribute *compiling)
{
	struct splice_frame method = {.kind = SPLICE_COMPILED,
				      .method = *(const uint64_t *)(compiling + 1),
				      .check = compiling->about,
				      .bci = -1};
	size_t len = splice->frames.len, first = len > COMPILER_ROOTS ? len - COMPILER_ROOTS : 0, i = len;
	struct splice_frame *frames;

	while (i > first && !is_compiler(symbols, process, &splice->frames.items[i - 1]))
		i--;
	if (i == first)
		return 0;
	if (vec_push(&splice->frames, method) < 0)
		return -ENOMEM;
	frames = splice->frames.items;
	memmove(frames + i, frames + i - 1, (len - i + 1) * sizeof(*frames));
	frames[i - 1] = method;
	return 0;
}

int splice_mark(struct splice *splice, const char *mark)
{
	vec_clear(&splice->frames);
	vec_clear(&splice->wants);
	splice->verdict = (struct splice_verdict){0};
	return vec_push(&splice->frames, (struct splice_frame){.kind = SPLICE_MARK, .mark = mark});
}

void splice_release(struct splice *splice)
{
	vec_release(&splice->frames);
	vec_release(&splice->wants);
}
