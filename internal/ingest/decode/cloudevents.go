package decode

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

var cloudeventsEntry = Entry{
	Name:    "cloudevents",
	Summary: "Native events in CloudEvents envelopes (structured mode, one or a batch); the envelope's time holds where the event has none.",
	Example: `{"specversion":"1.0","id":"17","source":"/deployer","type":"com.example.change","time":"2026-09-13T08:27:05Z","datacontenttype":"application/json","data":{"id":"deploy-17","kind":"deploy","phase":"started","target":"checkout"}}`,
	New: func(p *pipeline.Pipeline) ingest.Decoder {
		d := foreign(p, nil).(*jsonDecoder)
		d.parse = d.cloudEvent
		return d
	},
}

type envelope struct {
	SpecVersion scalar          `json:"specversion"`
	Type        string          `json:"type"`
	Time        moment          `json:"time"`
	Data        json.RawMessage `json:"data"`
	Base64      string          `json:"data_base64"`

	data []byte // the event, whichever way it was written
}

// unwrap opens a CloudEvents envelope; wrapped is false for what has none.
func unwrap(raw []byte) (env envelope, wrapped bool, err error) {
	if err := fill(raw, &env); err != nil {
		return envelope{}, false, err
	}
	if env.SpecVersion.text == "" {
		return envelope{}, false, nil
	}
	switch {
	case env.Type == "":
		return env, true, missing("type")
	case env.Base64 != "":
		if env.data, err = base64.StdEncoding.DecodeString(env.Base64); err != nil {
			return env, true, invalid("data_base64", "is not base64")
		}
	case len(env.Data) > 0 && env.Data[0] == '"':
		var text string // JSON written as a text, a mistake that many senders make
		if err := json.Unmarshal(env.Data, &text); err != nil {
			return env, true, invalid("data", "%v", err)
		}
		env.data = []byte(text)
	default:
		env.data = env.Data
	}
	if len(env.data) == 0 || string(env.data) == "null" {
		return env, true, missing("data")
	}
	return env, true, nil
}

func (d *jsonDecoder) cloudEvent(raw []byte, _ time.Time, emit func(signal.Event), refuse func(error)) {
	env, wrapped, err := unwrap(raw)
	switch {
	case err != nil:
		refuse(err)
		return
	case !wrapped:
		refuse(missing("specversion"))
		return
	}
	list := []json.RawMessage{env.data}
	if env.data[0] == '[' {
		if err := fill(env.data, &list); err != nil {
			refuse(err)
			return
		}
	}
	for _, item := range list {
		var fields map[string]json.RawMessage
		if err := fill(item, &fields); err != nil {
			refuse(err)
			continue
		}
		if fields == nil {
			refuse(missing("data"))
			continue
		}
		if _, has := fields["time"]; !has && !env.Time.IsZero() && d.stream != signal.Alerts {
			fields["time"], _ = env.Time.MarshalJSON()
			if item, err = json.Marshal(fields); err != nil {
				refuse(&signaljson.Error{Reason: signaljson.Malformed, Msg: err.Error()})
				continue
			}
		}
		d.raw, d.bad = item, nil
		if err := cmp.Or(signaljson.Decode(item, d.stream, emit), d.bad); err != nil {
			refuse(err)
		}
	}
}
