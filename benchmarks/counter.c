/* Switches Valgrind's count of instructions on and off; see measure.py. */
#include <valgrind/callgrind.h>

void start(void)
{
    CALLGRIND_START_INSTRUMENTATION;
}

void zero(void)
{
    CALLGRIND_ZERO_STATS;
}

void dump(const char *label)
{
    CALLGRIND_DUMP_STATS_AT(label);
}

void stop(void)
{
    CALLGRIND_STOP_INSTRUMENTATION;
}
