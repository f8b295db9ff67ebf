// Package engine runs ClickHouse inside this process: it loads libchdb with purego (no C compiler), opens a data folder
// and hands out connections. It knows nothing of HTTP, and it is not meant for the process that does Tocsin's work: a
// crash of the engine takes its process along, which is why chlocal is a program of its own.
package engine
