package trace

import "math/big"

// weight is an exact probability: num / (parts × 2^shift).
type weight struct {
	num   *big.Int
	parts *big.Int // the number of real servers that IPVS chose from; nil = 1
	shift uint
}

func certain() weight { return weight{num: big.NewInt(1)} }

// times returns w × p / 2^31.
func (w weight) times(p uint32) weight {
	w.num = new(big.Int).Mul(w.num, big.NewInt(int64(p)))
	w.shift += 31
	return w
}

// among returns w / n.
func (w weight) among(n int) weight {
	w.parts = new(big.Int).Mul(w.divisor(), big.NewInt(int64(n)))
	return w
}

func (w weight) divisor() *big.Int {
	if w.parts == nil {
		return big.NewInt(1)
	}
	return w.parts
}

func (w weight) plus(o weight) weight {
	if w.shift < o.shift {
		w, o = o, w
	}
	a, b := new(big.Int).Set(w.num), new(big.Int).Lsh(o.num, w.shift-o.shift)
	parts := w.parts
	if w.divisor().Cmp(o.divisor()) != 0 {
		a.Mul(a, o.divisor())
		b.Mul(b, w.divisor())
		parts = new(big.Int).Mul(w.divisor(), o.divisor())
	}
	return weight{num: a.Add(a, b), parts: parts, shift: w.shift}
}

func (w weight) probability() Probability {
	zeros := min(w.num.TrailingZeroBits(), w.shift)
	num := new(big.Int).Rsh(w.num, zeros)
	den := new(big.Int).Lsh(w.divisor(), w.shift-zeros)
	if w.parts != nil {
		common := new(big.Int).GCD(nil, nil, num, den)
		num.Quo(num, common)
		den.Quo(den, common)
	}
	if den.IsInt64() && den.Int64() == 1 {
		return Probability(num.String())
	}
	return Probability(num.String() + "/" + den.String())
}
