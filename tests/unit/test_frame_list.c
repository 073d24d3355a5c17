/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include "writers/html/frame_list.h"

static char *listed(const struct profile *profile, const struct writer_options *options)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(frame_list_write(profile, options, out), 0);
	fclose(out);
	return text;
}

static void names_and_nodes(void **state)
{
	struct writer_options options;
	struct profile profile;
	uint32_t thread, run, other, lock;
	char *text;

	assert_int_equal(profile_init(&profile), 0);
	thread = profile_thread(&profile, 1, 1, "main", "java", 0);
	run = java_frame(&profile, FRAME_COMPILED, "a.Main", "run", "()V", 1);
	other = java_frame(&profile, FRAME_INTERPRETED, "a.Main", "'other", "()V", 1);
	lock = frame_of(&profile, FRAME_KERNEL, "lock", "");
	ADD_STACK(&profile, thread, 2, run);
	ADD_STACK(&profile, thread, 3, run, other);
	ADD_STACK(&profile, thread, 1, lock);
	writer_options_default(&options);
	options.title = "a</script>";
	text = listed(&profile, &options);
	assert_string_equal(text, "<script type=\"text/plain\" id=\"frames\">\n<h1>a\u2039/script></h1>\n"
				  "\tconst units = 'samples';\nArray(3)\n"
				  "const cpool = [\n'all',\n' a/Main.\\'other',\n'\\'run',\n' lock'\n];\n\n"
				  "f(3,0,0,6)\nf(17,1,0,5)\nf(8,2,2,3)\nf(29,1,3,1)\n\n</script>\n");
	free(text);
	profile_release(&profile);
}

/* No name ends the element or hides its end, and each is one line. */
static void hostile_names(void **state)
{
	struct writer_options options;
	struct profile profile;
	char *text, *at;
	int ends = 0;

	profile_of_everything(&profile);
	writer_options_default(&options);
	options.threads = true;
	text = listed(&profile, &options);
	for (at = text; (at = strstr(at, "</")) != NULL; at++)
		ends++;
	assert_int_equal(ends, 2); /* of the title and of the element */
	assert_null(strstr(text, "<!"));
	at = strstr(text, "const cpool");
	assert_non_null(at);
	for (at = strchr(at, '\n') + 1; *at != ']'; at = strchr(at, '\n') + 1)
		assert_int_equal(*at, '\'');
	free(text);
	profile_release(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_nodes),
		cmocka_unit_test(hostile_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
