// Helpers of any region, whose functions are called by their addresses.
#include "common.h"
#include "workers.h"

#define WORK_ALONG(address, region, worker) call_at(address, region, worker)
#include "assist.h"
