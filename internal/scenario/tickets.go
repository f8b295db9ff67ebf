package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// makeTickets writes all tickets of the day: a few thousand, so they are made at once.
func (g *Generator) makeTickets() (out []signal.Ticket) {
	f := &g.scenario.file
	pool := newAccountPool(g.scenario.world.Accounts)
	daily := g.scenario.world.Daily
	for _, area := range slices.Sorted(maps.Keys(g.scenario.tickets.Areas)) {
		set := g.scenario.tickets.Areas[area]
		r := newRand(g.seed, "tickets "+area)
		for t := time.Duration(f.Start); t < time.Duration(f.End); t += time.Second {
			usual := set.PerHour * (1 + daily.Amplitude*daily.at(t)) / 3600
			for range poisson(r, usual) {
				out = append(out, g.ticket(r, t, set.Usual, pool))
			}
			for _, b := range f.Bursts {
				if b.Area != area {
					continue
				}
				v := g.curves[b.Driver].at(t - b.Delay.Std())
				for range poisson(r, b.PerHour*v/3600) {
					out = append(out, g.ticket(r, t, set.Trouble, pool))
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b signal.Ticket) int { return a.Time.Compare(b.Time) })
	for i := range out {
		out[i].ID = fmt.Sprintf("T%s-%05d", g.scenario.midnight.Format("0102"), i+1)
	}
	return out
}

var ticketSources = []string{"email", "web form", "web form", "chat", "community"}

func (g *Generator) ticket(r *rand.Rand, t time.Duration, texts []ticketText, pool *accountPool) signal.Ticket {
	f, text := &g.scenario.tickets, pick(r, texts)
	account := pool.draw(r)
	fill := strings.NewReplacer(
		"{repo}", pick(r, f.Repos), "{account}", account, "{n}", fmt.Sprint(100+r.IntN(9000)),
		"{time}", g.at(t-time.Duration(r.IntN(15))*time.Minute).Format("15:04"),
	)
	out := signal.Ticket{
		Time: g.at(t + time.Duration(r.IntN(1000))*time.Millisecond), Account: account, Language: text.Language,
		Subject: fill.Replace(text.Subject), Text: fill.Replace(text.Text), Source: pick(r, ticketSources), Status: "new",
		Severity: cmp.Or([]string{"", "", "low", "high"}[r.IntN(4)], "normal"),
	}
	if r.Float64() < f.Typos {
		out.Text = slip(r, out.Text)
	}
	return out
}

// slip swaps two letters in the middle of a word, as fingers in a hurry do.
func slip(r *rand.Rand, s string) string {
	letters := []rune(s)
	if len(letters) < 8 {
		return s
	}
	for range 10 {
		i := 1 + r.IntN(len(letters)-3)
		if isLetter(letters[i-1]) && isLetter(letters[i]) && isLetter(letters[i+1]) && letters[i] != letters[i+1] {
			letters[i], letters[i+1] = letters[i+1], letters[i]
			return string(letters)
		}
	}
	return s
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' }
