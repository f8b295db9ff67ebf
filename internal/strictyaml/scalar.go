package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
)

// scalar decodes a single value. Messages may repeat numbers and words of closed sets, never free text.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, what string) {
	if v.Type() == durationType {
		std, err := parseDuration(n.Value)
		d.errs.Add(PosOf(n), named(what, err))
		v.SetInt(int64(std))
		return
	}
	switch v.Kind() {
	case reflect.String:
		// Numbers and truth values keep their spelling: version: 1.10 stays "1.10", as users of Prometheus expect.
		v.SetString(n.Value)
	case reflect.Bool:
		b, err := strconv.ParseBool(n.Value)
		if n.ShortTag() != "!!bool" || err != nil {
			d.fail(n, "%s must be true or false, not %s", what, quote(n.Value))
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(digits(n), 0, v.Type().Bits())
		if d.number(n, "!!int", err, what) {
			v.SetInt(i)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		u, err := strconv.ParseUint(digits(n), 0, v.Type().Bits())
		if d.number(n, "!!int", err, what) {
			v.SetUint(u)
		}
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(digits(n), v.Type().Bits())
		if n.ShortTag() == "!!int" && err != nil { // 0x10 and the like
			var i int64
			i, err = strconv.ParseInt(digits(n), 0, 64)
			f = float64(i)
		}
		if d.number(n, "!!float", err, what) {
			v.SetFloat(f)
		}
	default:
		panic(fmt.Sprintf("strictyaml: cannot decode into %s", v.Type()))
	}
}

// number reports whether n is of the kind wanted and could be read. A threshold of NaN or infinity would be a rule
// that never fires, so these are refused like any word.
func (d *decoder) number(n *yaml.Node, want string, err error, what string) bool {
	noun := "a number"
	if want == "!!int" {
		noun = "a whole number"
	}
	tag := n.ShortTag()
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.fail(n, "%s is out of range: %s", what, quote(n.Value))
	case err != nil && strings.HasPrefix(n.Value, "-") && tag == "!!int":
		d.fail(n, "%s must not be negative", what)
	case err != nil, tag != want && tag != "!!int":
		hint := ""
		if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && err == nil {
			hint = "without quotes"
		}
		d.failHint(n, hint, "%s must be %s, not %s", what, noun, quote(n.Value))
	default:
		return true
	}
	return false
}

// digits drops YAML's digit separators.
func digits(n *yaml.Node) string { return strings.ReplaceAll(n.Value, "_", "") }

func (d *decoder) text(n *yaml.Node, v reflect.Value, u encoding.TextUnmarshaler, what string) {
	if !d.is(n, yaml.ScalarNode, what) {
		return
	}
	err := u.UnmarshalText([]byte(n.Value))
	if err != nil && v.Type() == timeType {
		d.failHint(n, "such as 2026-09-30T14:00:00Z", "%s must be an RFC 3339 time, not %s", what, quote(n.Value))
		return
	}
	d.errs.Add(PosOf(n), named(what, err))
}

// named says which field a plain error is about. Errors with places of their own stay as they are.
func named(what string, err error) error {
	if err == nil {
		return nil
	}
	var list Errors
	if errors.As(err, &list) {
		return err
	}
	var one *Error
	if errors.As(err, &one) {
		if one.Line != 0 {
			return err
		}
		return &Error{File: one.File, Msg: what + ": " + one.Msg, Hint: one.Hint}
	}
	return &Error{Msg: what + ": " + err.Error()}
}

func genericScalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		if b, err := strconv.ParseBool(n.Value); err == nil {
			return b
		}
	case "!!int":
		if i, err := strconv.ParseInt(digits(n), 0, 64); err == nil {
			return i
		}
	case "!!float":
		if f, err := strconv.ParseFloat(digits(n), 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	}
	return n.Value
}
