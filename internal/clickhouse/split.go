package clickhouse

import "strings"

// split cuts a file into statements at semicolons that stand neither in a text, a quoted name nor a comment. What
// holds only comments is no statement.
func split(sql string) (statements []string) {
	start, code := 0, false // code: something besides blanks and comments since start
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case c == ';':
			if code {
				statements = append(statements, strings.TrimSpace(sql[start:i]))
			}
			i++
			start, code = i, false
		case strings.HasPrefix(sql[i:], "--"), strings.HasPrefix(sql[i:], "# "), strings.HasPrefix(sql[i:], "#!"):
			i = after(sql, i, "\n")
		case strings.HasPrefix(sql[i:], "/*"):
			i = after(sql, i+2, "*/")
		case c == '\'' || c == '"' || c == '`':
			i, code = endOfQuoted(sql, i), true
		case c == '$' && heredoc(sql[i:]) != "":
			tag := heredoc(sql[i:])
			i, code = after(sql, i+len(tag), tag), true
		default:
			code = code || !strings.ContainsRune(" \t\r\n", rune(c))
			i++
		}
	}
	if code {
		statements = append(statements, strings.TrimSpace(sql[start:]))
	}
	return statements
}

// after is the place behind the next occurrence of end, or the end of the file, where ClickHouse complains better.
func after(sql string, from int, end string) int {
	if n := strings.Index(sql[min(from, len(sql)):], end); n >= 0 {
		return from + n + len(end)
	}
	return len(sql)
}

// endOfQuoted finds the closing quote; it may be doubled or escaped inside.
func endOfQuoted(sql string, i int) int {
	quote := sql[i]
	for i++; i < len(sql); i++ {
		switch {
		case sql[i] == '\\':
			i++
		case sql[i] == quote && i+1 < len(sql) && sql[i+1] == quote:
			i++
		case sql[i] == quote:
			return i + 1
		}
	}
	return len(sql)
}

// heredoc returns the opening tag $name$ of a text, or "".
func heredoc(sql string) string {
	for i := 1; i < len(sql); i++ {
		c := sql[i]
		if c == '$' {
			return sql[:i+1]
		}
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return ""
		}
	}
	return ""
}
