/* Switches Valgrind's count of instructions on and off; see measure.py. */
#include <valgrind/callgrind.h>

void start(void)
{
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void stop(const char *label)
{
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS_AT(label);
}
