// What is undone before a signal ends the process: half-written files, a line of progress.
#pragma once

namespace hark {

// From here on SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU and SIGXFSZ clean up before they
// end the process. Those that are ignored, or that somebody else handles, stay so.
void handle_ending_signals();

// The same, and `action` is one part of cleaning up: at most 4, which are never removed. A signal
// handler calls it, so it may call only what handlers may.
void add_clean_up(void (*action)());

// For handlers whose mask is full: runs the actions once, or waits for another thread that does.
void clean_up();
// The same, and the signal ends the process once the handler has returned.
void clean_up_and_end(int signal);

}  // namespace hark
