package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// accountPool is the world's customers, a few of them large.
type accountPool struct {
	names  []string
	shares shares
}

func newAccountPool(f accountsFile) *accountPool {
	p := &accountPool{names: make([]string, f.Count)}
	weights := make([]float64, f.Count)
	for i := range weights {
		weights[i] = math.Pow(float64(i+1)+f.Offset, -f.Exponent)
		p.names[i] = fmt.Sprintf("%s%04d", f.Prefix, i+1)
	}
	p.shares = newShares(weights)
	return p
}

func (p *accountPool) draw(r *rand.Rand) string { return p.names[p.shares.draw(r)] }
