/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that is asked by lines through one named pipe, `control` of a folder, and answers each by a line of JSON
 * through another, `answer`; see `pdrgate.hosts.piped_program`. An {"error":...} is its last answer.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static char answer_path[4096];

/* What lines are read from; NULL where the folder has no such pipe. It ends with whoever started it. */
static FILE *begin_to_be_asked(const char *folder)
{
	char control_path[4096];
	FILE *control;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(control_path, sizeof(control_path), "%s/control", folder);
	snprintf(answer_path, sizeof(answer_path), "%s/answer", folder);
	control = fopen(control_path, "r+");	/* not the end of file when whoever wrote a line closes it */
	if (control)
		setvbuf(control, NULL, _IOLBF, 0);
	return control;
}

static void answer(const char *format, ...)
{
	FILE *file = fopen(answer_path, "w");	/* waits for whoever reads it */
	va_list args;

	if (!file)
		exit(1);
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	fputc('\n', file);
	fclose(file);
}

static void fail(const char *what)
{
	answer("{\"error\":\"%s: %s\"}", what, strerror(errno));
	exit(1);
}
