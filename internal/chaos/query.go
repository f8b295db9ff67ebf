package chaos

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// part is one life of one partition, as the ledger names it.
type part struct {
	stream      string // which is the topic's name, too
	partition   int
	incarnation uint32
}

func (p part) String() string {
	return fmt.Sprintf("%s/%d of incarnation %d", p.stream, p.partition, p.incarnation)
}

// rows asks ClickHouse over its HTTP interface, past all proxies, and gives each row's columns.
func (c *campaign) rows(ctx context.Context, sql string, each func([]string) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	q := url.Values{"database": {"tocsin"}, "default_format": {"TabSeparated"}, "wait_end_of_query": {"1"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.engine.URL()+"/?"+q.Encode(), strings.NewReader(sql))
	if err != nil {
		return fmt.Errorf("ask ClickHouse: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask ClickHouse: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 400))
		return fmt.Errorf("ask ClickHouse: status %d: %s", res.StatusCode, text)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 1<<20), 16<<20)
	for lines.Scan() {
		if err := each(strings.Split(lines.Text(), "\t")); err != nil {
			return err
		}
	}
	return lines.Err()
}

// columns reads numbers out of a row.
type columns struct {
	row []string
	err error
}

func (c *columns) text(i int) string {
	if i >= len(c.row) {
		c.err = fmt.Errorf("a row of %d columns", len(c.row))
		return ""
	}
	return c.row[i]
}

func (c *columns) number(i int) int64 {
	n, err := strconv.ParseInt(c.text(i), 10, 64)
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("column %d: %w", i, err)
	}
	return n
}

func (c *columns) count(i int) uint64 { return uint64(max(c.number(i), 0)) }

func (c *columns) part(at int) part {
	return part{c.text(at), int(c.number(at + 2)), uint32(c.number(at + 1))}
}

// stored is how far each partition's ledger goes.
func (c *campaign) stored(ctx context.Context) (map[part]int64, error) {
	out := map[part]int64{}
	err := c.rows(ctx, "SELECT topic, incarnation, partition, max(end_offset) FROM ingest_batches GROUP BY 1, 2, 3", func(row []string) error {
		r := columns{row: row}
		out[r.part(0)] = r.number(3)
		return r.err
	})
	return out, err
}

// parts are a life's partitions as the ledger must call them: a partition's incarnation counts the topic's lives in which
// it was there.
func (c *campaign) parts(l *life) []part {
	p := c.producer
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]part, len(l.entries))
	for i := range out {
		out[i] = part{l.stream, i, 0}
		for _, earlier := range p.lives[l.stream][:l.number] {
			if i < len(earlier.entries) {
				out[i].incarnation++
			}
		}
	}
	return out
}

// lag is how many records are not stored yet, for the line of progress.
func (c *campaign) lag(ctx context.Context) string {
	stored, err := c.stored(ctx)
	if err != nil {
		return "unknown"
	}
	n := int64(0)
	for _, stream := range streams {
		l := c.producer.last(stream)
		ids := c.parts(l)
		for i, end := range c.producer.ends(stream) {
			if i < len(ids) {
				n += end - stored[ids[i]]
			}
		}
	}
	return fmt.Sprint(n, " records")
}
