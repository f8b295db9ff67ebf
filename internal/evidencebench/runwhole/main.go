// Command runwhole plays quiet months to the whole detector and counts the incidents that would have woken somebody: make bench-quiet.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tocsin-project/tocsin/internal/evidencebench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "runwhole:", err)
		os.Exit(1)
	}
}

// job is so many months of one kind of world by one budget.
type job struct {
	kind   evidencebench.Kind
	budget string
	every  float64 // days
	seeds  int
}

func run() error {
	seeds := flag.Int("seeds", 20, "months of the realistic world by the largest budget; a quarter of them of each other")
	days := flag.Int("days", 30, "in a month")
	flag.Parse()
	few := max(1, *seeds/4)
	jobs := []job{
		{evidencebench.Realistic, "1 per 7d", 7, *seeds}, {evidencebench.Realistic, "1 per 30d", 30, few}, {evidencebench.Realistic, "1 per 90d", 90, few},
		{evidencebench.Drifting, "1 per 30d", 30, few}, {evidencebench.Heavy, "1 per 30d", 30, few},
	}
	fmt.Println("| world | budget | months | allowed | upper 95% bound | pages | incidents only suspected | findings |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, j := range jobs {
		sum, err := j.run(*days)
		if err != nil {
			return err
		}
		allowed := float64(j.seeds**days) / j.every
		fmt.Printf("| %s | %s | %d | %.1f | %d | %d | %d | %d |\n", j.kind.Name, j.budget, j.seeds, allowed, evidencebench.UpperPoisson(allowed), sum.Pages, sum.Suspected-sum.Pages, sum.Findings)
	}
	return nil
}

func (j *job) run(days int) (evidencebench.Whole, error) {
	rules, err := evidencebench.WholeRules(j.budget)
	if err != nil {
		return evidencebench.Whole{}, fmt.Errorf("budget %s: %w", j.budget, err)
	}
	return evidencebench.RunWholes(j.kind, j.seeds, days, rules, func(seed int, w evidencebench.Whole) {
		fmt.Fprintf(os.Stderr, "%s, %s, seed %d: %d pages\n", j.kind.Name, j.budget, seed, w.Pages)
		for _, p := range w.Paging {
			fmt.Fprintf(os.Stderr, "  day %.2f: %s\n", float64(p.Minute)/(24*60), p.Title)
		}
	})
}
