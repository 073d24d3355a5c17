/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "status/status.h"

/* What a browser sends of a page whose name, or whose own name's new address, is another host's. */
static void test_pages_of_other_sites(void **state)
{
	static const struct {
		const char *head;
		bool at_any, at_local; /* refused where all may ask, and where this host alone may */
	} rows[] = {
		{"", false, false},
		{"Host: localhost:9100\r\n", false, false},
		{"host:LocalHost\r\n", false, false},
		{"Host: 127.0.0.1:9100\r\n", false, false},
		{"Host: 127.1.2.3\r\n", false, false},
		{"Host: [::1]:9100\r\n", false, false},
		{"Host: example.org\r\n", false, true},
		{"Host: example.org:9100\r\n", false, true},
		{"Host: localhost.example.org:9100\r\n", false, true},
		{"Host: 128.0.0.1:9100\r\n", false, true},
		{"Host: \r\n", false, true},
		{"Accept: */*\r\nHost: example.org\r\n", false, true},
		{"Host: localhost\r\nOrigin: http://example.org\r\n", true, true},
		{"Host: localhost\r\nOrigin: null\r\n", true, true},
		{"Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", true, true},
		{"Host: localhost\r\nSec-Fetch-Site: none\r\n", false, false},
	};
	char request[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(request, sizeof(request), "GET /metrics HTTP/1.1\r\n%s\r\n", rows[i].head);
		assert_int_equal(http_is_of_other_site(request, false), rows[i].at_any);
		assert_int_equal(http_is_of_other_site(request, true), rows[i].at_local);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_of_other_sites),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
