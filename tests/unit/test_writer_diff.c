/* SPDX-License-Identifier: MIT */
/* The difference of two profiles: the merged tree, its collapsed form, and the data in the page. */
#include "fixtures/profiles.h"
#include "writers/shared/tree.h"

/* How many samples the stacks below Main.run have. */
struct counts {
	uint32_t hot, same, gone, fresh;
};

static void fill(struct profile *p, const struct counts *counts)
{
	uint32_t thread, run, hot, same, gone, fresh, get;

	assert_int_equal(profile_init(p), 0);
	(void)profile_event(p, "cpu", PROFILE_NS, 10 * MS);
	thread = profile_thread(p, 100, 101 + counts->hot, "main", "java", 0); /* another id in each run */
	run = java_frame(p, FRAME_COMPILED, "app.Main", "run", "()V", 10);
	hot = java_frame(p, FRAME_COMPILED, "app.Main", "hot", "()V", 20);
	same = java_frame(p, FRAME_COMPILED, "app.Main", "same", "()V", 30);
	gone = java_frame(p, FRAME_INTERPRETED, "app.Main", "gone", "()V", 40);
	fresh = java_frame(p, FRAME_COMPILED, "app.Main", "fresh", "()V", 50);
	get = java_frame(p, FRAME_INLINED, "java.util.HashMap", "get", "()V", 60);
	ADD_STACK(p, thread, counts->hot, run, hot);
	ADD_STACK(p, thread, counts->same, run, same);
	ADD_STACK(p, thread, counts->gone, run, gone, get);
	ADD_STACK(p, thread, counts->fresh, run, fresh);
}

static const struct counts before = {.hot = 5, .same = 3, .gone = 2};
static const struct counts after = {.hot = 12, .same = 6, .fresh = 2};
static const struct counts nothing = {0};

struct two {
	struct profile a, b;
	struct writer_diff diff;
	struct writer_options options;
};

static void two_of(struct two *two, const struct counts *a, const struct counts *b)
{
	fill(&two->a, a);
	fill(&two->b, b);
	two->diff = (struct writer_diff){
		.a = {.profile = &two->a, .name = "a.duet"},
		.b = {.profile = &two->b, .name = "b.duet"},
		.normalize = true,
	};
	writer_options_default(&two->options);
}

static void two_release(struct two *two)
{
	profile_release(&two->a);
	profile_release(&two->b);
}

static __attribute__((noinline)) char *written_diff(const char *writer, const struct two *two)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(writer_by_name(writer)->write_diff(&two->diff, &two->options, out), 0);
	fclose(out);
	return text;
}

static void assert_written(const struct two *two, const char *want)
{
	char *text = written_diff("collapsed", two);

	assert_string_equal(text, want);
	free(text);
}

static uint32_t node_of(const struct tree *tree, const char *text)
{
	for (uint32_t i = 1; i < tree->nodes.len; i++)
		if (!strcmp(tree_label(tree, i)->text, text))
			return i;
	fail_msg("no frame %s", text);
	return 0;
}

static void assert_node(const struct tree_diff *diff, uint32_t node, uint64_t total_a, uint64_t self_a,
			uint64_t total_b, uint64_t self_b)
{
	const struct tree_side *a = &diff->a.items[node];
	const struct tree_node *b = &diff->tree.nodes.items[node];

	assert_int_equal(a->total.samples, total_a);
	assert_int_equal(a->total.amount, total_a * 10 * MS);
	assert_int_equal(a->self.samples, self_a);
	assert_int_equal(b->total.samples, total_b);
	assert_int_equal(b->total.amount, total_b * 10 * MS);
	assert_int_equal(b->self.samples, self_b);
}

static void nodes_have_both_weights(void **state)
{
	struct tree_diff diff;
	struct two two;
	uint32_t gone;

	two_of(&two, &before, &after);
	assert_int_equal(tree_diff_build(&diff, &two.diff, &two.options), 0);
	assert_int_equal(diff.tree.nodes.len, 7);
	assert_int_equal(diff.a.len, 7);
	assert_node(&diff, 0, 10, 0, 20, 0);
	assert_node(&diff, node_of(&diff.tree, "app/Main.run"), 10, 0, 20, 0);
	assert_node(&diff, node_of(&diff.tree, "app/Main.hot"), 5, 5, 12, 12);
	assert_node(&diff, node_of(&diff.tree, "app/Main.same"), 3, 3, 6, 6);
	assert_node(&diff, node_of(&diff.tree, "app/Main.fresh"), 0, 0, 2, 2);
	gone = node_of(&diff.tree, "app/Main.gone");
	assert_node(&diff, gone, 2, 0, 0, 0);
	assert_int_equal(diff.tree.nodes.items[gone].interpreted, 2);
	assert_int_equal(diff.tree.nodes.items[gone].line_low, 40);
	assert_node(&diff, node_of(&diff.tree, "java/util/HashMap.get"), 2, 2, 0, 0);
	tree_diff_release(&diff);
	two_release(&two);
}

/* Twice the samples in the same parts are no difference. */
static void equal_profiles_have_none(void **state)
{
	static const struct counts twice = {.hot = 10, .same = 6, .gone = 4};
	struct two two;

	two_of(&two, &before, &before);
	assert_written(&two, "app/Main.run;app/Main.gone;java/util/HashMap.get 2 2\napp/Main.run;app/Main.hot 5 5\n"
			     "app/Main.run;app/Main.same 3 3\n");
	two_release(&two);
	two_of(&two, &before, &twice);
	assert_written(&two, "app/Main.run;app/Main.gone;java/util/HashMap.get 4 4\napp/Main.run;app/Main.hot 10 10\n"
			     "app/Main.run;app/Main.same 6 6\n");
	two_release(&two);
}

static void one_may_be_empty(void **state)
{
	struct two two;

	two_of(&two, &nothing, &after);
	assert_written(&two, "app/Main.run;app/Main.fresh 0 2\napp/Main.run;app/Main.hot 0 12\n"
			     "app/Main.run;app/Main.same 0 6\n");
	two_release(&two);
	two_of(&two, &before, &nothing);
	assert_written(&two, "app/Main.run;app/Main.gone;java/util/HashMap.get 2 0\napp/Main.run;app/Main.hot 5 0\n"
			     "app/Main.run;app/Main.same 3 0\n");
	two_release(&two);
	two_of(&two, &nothing, &nothing);
	assert_written(&two, "");
	free(written_diff("flamegraph", &two));
	two_release(&two);
}

static void weights_may_be_raw(void **state)
{
	struct two two;

	two_of(&two, &before, &after);
	two.diff.normalize = false;
	assert_written(&two, "app/Main.run;app/Main.fresh 0 2\napp/Main.run;app/Main.gone;java/util/HashMap.get 2 0\n"
			     "app/Main.run;app/Main.hot 5 12\napp/Main.run;app/Main.same 3 6\n");
	two.options.total = true;
	two.options.max_depth = 1;
	assert_written(&two, "[truncated];app/Main.fresh 0 20000000\n[truncated];app/Main.hot 50000000 120000000\n"
			     "[truncated];app/Main.same 30000000 60000000\n"
			     "[truncated];java/util/HashMap.get 20000000 0\n");
	two_release(&two);
}

static void output_matches_golden(void **state)
{
	struct two two;
	char *page, *start;

	two_of(&two, &before, &after);
	two.options.style.annotate = true;
	profile_add_fact(&two.a, "kernel", "Linux");
	profile_add_fact(&two.b, "kernel", "Linux");
	profile_add_fact(&two.a, "command", "duet -d 10");
	profile_add_fact(&two.b, "command", "duet -d 20");
	profile_add_loss(&two.a, 7, "samples not joined");
	profile_add_loss(&two.b, 8, "samples not joined");
	page = written_diff("collapsed", &two);
	assert_golden("diff.collapsed", page);
	free(page);
	page = written_diff("flamegraph", &two);
	start = strstr(page, "{\"title\"");
	assert_non_null(start);
	strcpy(strstr(start, "</script>"), "\n");
	assert_golden("diff.flamegraph.json", start);
	free(page);
	two_release(&two);
}

/* Frames that only one profile has, and that would be too narrow in the other. */
static void narrow_in_both_is_left_out(void **state)
{
	struct two two;
	char *page;

	two_of(&two, &before, &after);
	two.options.min_width = 15;
	page = written_diff("flamegraph", &two);
	assert_non_null(strstr(page, "\"depth\":[1,1,1,-1,0],")); /* run, gone, get, hot, same; without fresh */
	free(page);
	two_release(&two);
}

/* Their ids and numbers differ from run to run. */
static void threads_and_lambdas_are_the_same(void **state)
{
	static const char *const lambdas[] = {"app.Main$$Lambda/0x00007f80", "app.Main$$Lambda$17/0x00007fff"};
	struct two two;

	two_of(&two, &nothing, &after);
	for (size_t i = 0; i < 2; i++) {
		struct profile *p = i ? &two.b : &two.a;

		ADD_STACK(p, profile_thread(p, 5, 6 + (uint32_t)i, "pool", "java", 0), 4,
			  java_frame(p, FRAME_COMPILED, lambdas[i], "run", "()V", 0),
			  frame_of(p, FRAME_THREAD, i ? "[x tid=7]" : "[x tid=8]", ""));
	}
	two.options.threads = two.options.processes = true;
	two.options.include = (struct opt_strings){(const char *[]){"*Lambda*"}, 1};
	assert_written(&two, "[java];[pool];app/Main$$Lambda.run;[x] 4 4\n");
	two_release(&two);
}

/* What has grown comes first, with the weights as they are; what is equal is left out. */
static void text_ranks_growth(void **state)
{
	static const char *const lines[] = {"cpu                 : +100000000 ns (100000000, then 200000000)\n",
					    "     +70000000      50000000     120000000  app.Main.hot\n"
					    "     +30000000      30000000      60000000  app.Main.same\n"
					    "     +20000000             0      20000000  app.Main.fresh\n"
					    "     -20000000      20000000             0  java.util.HashMap.get\n",
					    "\n--- +70000000 ns (50000000, then 120000000)\n"
					    "  [ 0] app.Main.hot\n  [ 1] app.Main.run\n"};
	struct two two;
	char *text;

	two_of(&two, &before, &after);
	text = written_diff("text", &two);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_non_null(strstr(text, lines[i]));
	free(text);
	two_release(&two);
	two_of(&two, &before, &before);
	text = written_diff("text", &two);
	assert_null(strstr(text, "Main"));
	free(text);
	two_release(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_have_both_weights),
		cmocka_unit_test(equal_profiles_have_none),
		cmocka_unit_test(one_may_be_empty),
		cmocka_unit_test(weights_may_be_raw),
		cmocka_unit_test(output_matches_golden),
		cmocka_unit_test(narrow_in_both_is_left_out),
		cmocka_unit_test(threads_and_lambdas_are_the_same),
		cmocka_unit_test(text_ranks_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
