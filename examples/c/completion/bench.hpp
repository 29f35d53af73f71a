#pragma once

#include "data.hpp"
#include "options.hpp"

// Times an epoch over areas against shared memory, in turns, for several numbers of workers. Prints JSON.
int bench(const Options &options, const Data &data);
