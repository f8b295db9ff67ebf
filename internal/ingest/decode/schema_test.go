package decode

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/schemas"
)

type schemaFile struct {
	Required   []string                   `json:"required"`
	Properties map[string]json.RawMessage `json:"properties"`
	AnyOf      []schemaFile               `json:"anyOf"`
	Defs       map[string]schemaFile      `json:"$defs"`
}

func readSchema(t *testing.T, name string) (s schemaFile, example map[string]any) {
	t.Helper()
	for file, into := range map[string]any{"v1.schema.json": &s, "v1.example.json": &example} {
		data, err := schemas.Kafka.ReadFile("kafka/" + name + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatalf("%s/%s: %v", name, file, err)
		}
	}
	return s, example
}

// The contract and the decoder must say the same: the example is an event, what is required is what it cannot be
// without, what is listed is what it may have.
func TestSchemasAgreeWithTheDecoder(t *testing.T) {
	for _, stream := range signal.Streams {
		name := typeNames[stream]
		t.Run(name, func(t *testing.T) {
			s, example := readSchema(t, name)
			required := s.Required
			if stream == signal.Alerts {
				// The body of a webhook has several; the fields are those of one.
				s, required = s.Defs["alert"], s.Defs["alert"].Required
				whole, err := json.Marshal(example)
				if err != nil {
					t.Fatal(err)
				}
				if got := run(t, minimal(t, stream, "json", ""), whole); len(got) != 1 || strings.HasPrefix(got[0], "dead") {
					t.Errorf("webhook: %v", got)
				}
				example = example["alerts"].([]any)[0].(map[string]any)
			}
			decode := func(without ...string) string {
				event := map[string]any{}
				for k, v := range example {
					if !slices.Contains(without, k) {
						event[k] = v
					}
				}
				b, err := json.Marshal(event)
				if err != nil {
					t.Fatal(err)
				}
				return strings.Join(run(t, minimal(t, stream, "json", ""), b), "\n")
			}
			if got := decode(); strings.HasPrefix(got, "dead") {
				t.Fatalf("the example is none: %s", got)
			}
			for field := range example {
				if _, listed := s.Properties[field]; !listed {
					t.Errorf("the example has %q, the schema has not", field)
				}
				fails := strings.HasPrefix(decode(field), "dead letter missing_field")
				if fails != slices.Contains(required, field) {
					t.Errorf("%q: required %v, decoder needs it %v", field, !fails, fails)
				}
			}
			for field := range s.Properties {
				if _, shown := example[field]; !shown && field != "type" && field != "estimated" && field != "receiver" {
					t.Errorf("the example does not show %q", field)
				}
			}
			var either []string
			for _, o := range s.AnyOf {
				either = append(either, o.Required...)
			}
			if len(either) > 0 && !strings.HasPrefix(decode(either...), "dead letter missing_field") {
				t.Errorf("the decoder needs none of %v", either)
			}
		})
	}
}

// Words of closed sets are the same in the contract and in the vocabulary.
func TestSchemasListTheWords(t *testing.T) {
	words := func(event, field string) (enum []string) {
		s, _ := readSchema(t, event)
		var f struct {
			Enum []string `json:"enum"`
		}
		if err := json.Unmarshal(s.Properties[field], &f); err != nil {
			t.Fatal(err)
		}
		return f.Enum
	}
	var kinds, outcomes []string
	for _, k := range signal.ChangeKinds {
		kinds = append(kinds, string(k))
	}
	for o := range signal.NumOutcomes {
		outcomes = append(outcomes, o.String())
	}
	if got := words("change", "kind"); !slices.Equal(got, kinds) {
		t.Errorf("kinds: %v, %v", got, kinds)
	}
	if got := words("request", "outcome"); !slices.Equal(got, outcomes) {
		t.Errorf("outcomes: %v, %v", got, outcomes)
	}
}
