package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/respondtest"
	standin "github.com/tocsin-project/tocsin/internal/standin/slack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "xoxb-1234-secret"

func pair(t *testing.T, c Config) (*Sender, *standin.Server) {
	t.Helper()
	srv, err := standin.Start("127.0.0.1:0", standin.Options{Token: token, Channels: []string{"general", "incidents"}, Unlimited: true, RetryAfter: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return sender(t, srv, c), srv
}

func sender(t *testing.T, srv *standin.Server, c Config) *Sender {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	c.APIURL = srv.URL
	if c.Channel == "" {
		c.Channel = "incidents"
	}
	s, err := New(&c, token, "https://tocsin.example.com", client)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func send(t *testing.T, s *Sender, d respond.Delivery) string {
	t.Helper()
	r, err := s.Send(t.Context(), d)
	if err != nil {
		t.Fatalf("%s: %v", d.Action, err)
	}
	return r.Key
}

func note(key string, seq uint64, texts ...string) respond.Delivery {
	d := respondtest.Delivery(respond.ActionNote, respondtest.Example(), key)
	for k, text := range texts {
		d.Notes = append(d.Notes, respond.Note{Sequence: seq - uint64(len(texts)-1-k), At: respondtest.Start, Text: text})
	}
	return d
}

func TestOneMessageEditedInPlace(t *testing.T) {
	s, srv := pair(t, Config{})
	warning := respondtest.Warning()
	key := send(t, s, respondtest.Delivery(respond.ActionOpen, warning, ""))
	send(t, s, respondtest.Delivery(respond.ActionUpdate, respondtest.Example(), key))
	send(t, s, note(key, 5, "declared critical", "acknowledged by ada"))
	over := respondtest.Example()
	over.State, over.ResolvedAt = incident.Resolved, respondtest.Start.Add(2*time.Hour)
	if again := send(t, s, respondtest.Delivery(respond.ActionClose, over, key)); again != key {
		t.Errorf("the key changed from %s to %s", key, again)
	}
	c := srv.Channel("incidents")
	if len(c.Messages) != 1 || c.Messages[0].Edits != 2 || len(c.Messages[0].Replies) != 1 {
		t.Fatalf("got %+v", c)
	}
	if text := c.Messages[0].Replies[0].Text; text != "`08:43:00` declared critical\n`08:43:00` acknowledged by ada" {
		t.Errorf("the reply is %q", text)
	}
	if st := srv.State(); len(st.Rejected) > 0 {
		t.Errorf("rejected %v", st.Rejected)
	}
	if strings.Contains(fmt.Sprintf("%s", c.Messages[0].Blocks), ActionAcknowledge) {
		t.Error("a resolved incident still has buttons")
	}
}

// What people expect to see: header, fields, suspects with counter-evidence, buttons.
func TestContent(t *testing.T) {
	s, srv := pair(t, Config{})
	send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), ""))
	raw, _ := json.Marshal(srv.Channel("incidents").Messages[0])
	all := string(raw)
	for _, want := range []string{
		"🔴 CRITICAL: mysql/collab/primary and 28 services", `*Path*\nissues / create / write`, `*Failure rate*\n96% at worst, usually 0.3%`,
		`*Customers at least*\n1,204`, `*Tickets*\n14`, `*Started*\n08:43 UTC, 13 Sep`, `*Commander*\nnobody yet`,
		`1. \u003chttps://jobs.example.com/17?a=1\u0026amp;b=2|job data-clean-up\u003e, 82%`, `for: began 70 min before`, `against: 3 other jobs ran as well`,
		`3. no cause known, 7%`, `auth/token: 8.8% of writes fail (usually 0.02%)`, ActionAcknowledge, ActionResolve, ActionDismiss,
		`"event_type":"tocsin_incident"`, `"incident":"20260913-0843-mysql-collab-primary"`, `"sequence":"3"`,
		`\u003chttps://tocsin.example.com/incidents/20260913-0843-mysql-collab-primary|evidence\u003e`, `runbooks.example.com`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing in %s", want, all)
		}
	}
}

// crawlee-python PR#2155, kibana#73061 (section over 3,000), bolt-js#2509 (13,200 in all), grafana#30862, alertmanager#2070 (escaping,
// mentions): delivered as blocks, literally, and nobody is mentioned.
func TestHostileIncidentsAreDelivered(t *testing.T) {
	for name, i := range respondtest.Hostile() {
		t.Run(name, func(t *testing.T) {
			s, srv := pair(t, Config{OpenChannel: true})
			key := send(t, s, respondtest.Delivery(respond.ActionOpen, i, ""))
			key = send(t, s, respondtest.Delivery(respond.ActionUpdate, i, key))
			d := note(key, 90, strings.Split(strings.Repeat("<!channel> & \"x\"|", 40), "|")...)
			d.Notice.Incident.ID = i.ID
			send(t, s, d)
			i.State = incident.Resolved
			send(t, s, respondtest.Delivery(respond.ActionClose, i, key))
			st := srv.State()
			if len(st.Rejected) > 0 || len(st.Mentions) > 0 {
				t.Errorf("rejected %v, mentions %v", st.Rejected, st.Mentions)
			}
			m := srv.Channel("incidents").Messages[0]
			if len(m.Blocks) == 0 {
				t.Error("it fell back to plain text")
			}
			if name == "90 paths" && !strings.Contains(fmt.Sprintf("%s", m.Blocks), "+82 more") {
				t.Errorf("it does not say how many paths are left out: %s", m.Blocks)
			}
		})
	}
	if got := fit(strings.Repeat("&", 20), 12); strings.HasSuffix(got, "&a…") || regexp.MustCompile(`&[a-z]*…`).MatchString(got) {
		t.Errorf("an entity is torn: %q", got)
	}
}

// Whatever Slack has against our blocks, a plain text goes out; a failure of rendering is one way to get there (alertmanager#2857, #2301).
func TestPlainTextWhereBlocksAreRefused(t *testing.T) {
	for _, refusal := range []string{"invalid_blocks", "msg_blocks_too_long", "invalid_blocks_format"} {
		var bodies []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			blocks := r.FormValue("blocks")
			bodies = append(bodies, r.FormValue("text"))
			if len(blocks) > 4 {
				_, _ = fmt.Fprintf(w, `{"ok":false,"error":%q}`, refusal)
				return
			}
			_, _ = fmt.Fprint(w, `{"ok":true,"channel":"C000000001","ts":"1.000100"}`)
		}))
		s, _ := New(&Config{APIURL: srv.URL, Channel: "incidents"}, token, "", srv.Client())
		key := send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), ""))
		send(t, s, respondtest.Delivery(respond.ActionUpdate, respondtest.Example(), key))
		srv.Close()
		if key != "C000000001/1.000100" || len(bodies) != 4 || !strings.Contains(bodies[1], "96% of writes fail") {
			t.Errorf("%s: key %s, %q", refusal, key, bodies)
		}
	}
}

// Exactly one first message although Slack knows no idempotency keys: what was applied and not answered is found again,
// by a process that knows nothing, and by channel name alone.
func TestUnknownOutcomeIsSearchedBeforePostingAgain(t *testing.T) {
	s, srv := pair(t, Config{})
	for range 30 { // other incidents; below there are more than one page of the channel's history
		other := respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "")
		other.Notice.Incident.ID = "another"
		send(t, s, other)
	}
	srv.Fail(standin.Lost, 1, "chat.postMessage")
	d := respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "")
	_, err := s.Send(t.Context(), d)
	if se := respond.Classify(err); err == nil || !se.Unknown || se.Class != respond.Retry {
		t.Fatalf("got %v", err)
	}
	for range 210 {
		other := respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "")
		other.Notice.Incident.ID = "another"
		send(t, s, other)
	}
	d.Uncertain = true
	fresh := sender(t, srv, Config{})
	key := send(t, fresh, d)
	found := 0
	for _, m := range srv.Channel("incidents").Messages {
		if m.Metadata.EventPayload["incident"] == respondtest.Example().ID {
			found++
			if !strings.HasSuffix(key, m.TS) {
				t.Errorf("the key is %s, the message %s", key, m.TS)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d first messages", found)
	}
	// Not applied: it is posted.
	d.Notice.Incident.ID = "never-arrived"
	before := len(srv.Channel("incidents").Messages)
	if key := send(t, fresh, d); key == "" || len(srv.Channel("incidents").Messages) != before+1 {
		t.Error("what had not arrived was not posted")
	}
}

func TestUnknownOutcomeOfAReply(t *testing.T) {
	s, srv := pair(t, Config{})
	key := send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), ""))
	srv.Fail(standin.Lost, 1, "chat.postMessage")
	d := note(key, 7, "suspects changed")
	if _, err := s.Send(t.Context(), d); err == nil {
		t.Fatal("the answer was not lost")
	}
	d.Uncertain = true
	send(t, s, d)
	d = note(key, 8, "mitigated")
	d.Uncertain = true
	send(t, s, d)
	var texts []string
	for _, r := range srv.Channel("incidents").Messages[0].Replies {
		texts = append(texts, r.Text)
	}
	if diff := cmp.Diff([]string{"`08:43:00` suspects changed", "`08:43:00` mitigated"}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestDeletedMessageIsPostedAgain(t *testing.T) {
	s, srv := pair(t, Config{})
	key := send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), ""))
	srv.Delete("incidents", parseRef(key).ts)
	again := send(t, s, respondtest.Delivery(respond.ActionUpdate, respondtest.Example(), key))
	if again == key {
		t.Error("nothing was posted")
	}
	if n := len(srv.Channel("incidents").Messages); n != 1 {
		t.Errorf("%d messages", n)
	}
	// The answer is lost: the record still names the message that is gone, and what took its place is found.
	srv.Delete("incidents", parseRef(again).ts)
	d := respondtest.Delivery(respond.ActionUpdate, respondtest.Example(), again)
	srv.Fail(standin.Lost, 1, "chat.postMessage")
	if _, err := s.Send(t.Context(), d); err == nil {
		t.Fatal("no answer was lost")
	}
	last := send(t, s, d)
	messages := srv.Channel("incidents").Messages
	if len(messages) != 1 || !strings.HasSuffix(last, messages[0].TS) || messages[0].Edits != 1 {
		t.Errorf("key %s, %d messages", last, len(messages))
	}
}

func TestErrorsAreClassified(t *testing.T) {
	for name, c := range map[string]struct {
		setup  func(*standin.Server) Config
		class  respond.Class
		reason respond.Reason
		after  time.Duration
	}{
		// alertmanager#2111, #2205, SigNoz#12891.
		"429":        {func(s *standin.Server) Config { s.Fail(standin.RateLimit, 1, ""); return Config{} }, respond.RateLimited, respond.ReasonRateLimited, 7 * time.Second},
		"500":        {func(s *standin.Server) Config { s.Fail(standin.Error500, 1, ""); return Config{} }, respond.Retry, respond.ReasonServer, 0},
		"hang":       {func(s *standin.Server) Config { s.Fail(standin.Hang, 1, ""); return Config{} }, respond.Retry, respond.ReasonTimeout, 0},
		"no channel": {func(*standin.Server) Config { return Config{Channel: "nowhere"} }, respond.Permanent, respond.ReasonNotFound, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, srv := pair(t, Config{})
			s := sender(t, srv, c.setup(srv))
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := s.Send(ctx, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), ""))
			var se *respond.SendError
			if !errors.As(err, &se) || se.Class != c.class || se.Reason != c.reason || se.After != c.after {
				t.Errorf("got %+v", err)
			}
		})
	}
}

// alertmanager PR#1822: no token in errors. And a proxy's answer is not taken for Slack's.
func TestErrorsHideTheTokenAndProxiesAreNotBelieved(t *testing.T) {
	for n, answer := range []func(http.ResponseWriter){
		func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, `{"ok":false,"error":"invalid_auth `+token+`"}`) },
		func(w http.ResponseWriter) { w.WriteHeader(502); _, _ = fmt.Fprint(w, token) },
		func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, `{}`) },
		func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, `<html>`+token) },
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		s, _ := New(&Config{APIURL: srv.URL + "/" + token, Channel: "incidents"}, token, "", srv.Client())
		_, err := s.Send(t.Context(), respondtest.Delivery(respond.ActionOpen, respondtest.Example(), ""))
		srv.Close()
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, respond.Classify(err).Err), token) {
			t.Errorf("answer %d: %v", n, err)
		}
	}
}

func TestIncidentChannel(t *testing.T) {
	s, srv := pair(t, Config{OpenChannel: true})
	key := send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Warning(), ""))
	if n := len(srv.State().Channels); n != 2 {
		t.Fatalf("%d channels for a warning", n)
	}
	srv.Fail(standin.Lost, 1, "conversations.create") // made, but nobody knows
	if _, err := s.Send(t.Context(), respondtest.Delivery(respond.ActionUpdate, respondtest.Example(), key)); err == nil {
		t.Fatal("the answer was not lost")
	}
	key = send(t, s, respondtest.Delivery(respond.ActionUpdate, respondtest.Example(), key))
	key = send(t, s, respondtest.Delivery(respond.ActionUpdate, respondtest.Example(), key))
	st := srv.State()
	if len(st.Channels) != 3 || !strings.HasPrefix(st.Channels[2].Name, "inc-0913-mysql-collab-primary-and-28-services-") || parseRef(key).room != st.Channels[2].ID {
		t.Errorf("channels %+v, key %s", st.Channels[2:], key)
	}
	if !strings.Contains(fmt.Sprintf("%s", srv.Channel("incidents").Messages[0].Blocks), "<#"+st.Channels[2].ID+">") &&
		!strings.Contains(fmt.Sprintf("%s", srv.Channel("incidents").Messages[0].Blocks), `\u003c#`+st.Channels[2].ID) {
		t.Error("the first message does not lead to the channel")
	}
}

// The stand-in refuses what Slack refuses, in slack-go's own terms.
func TestStandInRefuses(t *testing.T) {
	srv, err := standin.Start("127.0.0.1:0", standin.Options{Token: token, Channels: []string{"c"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	api := slackgo.New(token, slackgo.OptionAPIURL(srv.URL), slackgo.OptionHTTPClient(client))
	section := func(n int) slackgo.MsgOption {
		return slackgo.MsgOptionBlocks(slackgo.NewSectionBlock(mrkdwn(strings.Repeat("x", n)), nil, nil))
	}
	post := func(opts ...slackgo.MsgOption) error {
		_, _, err := api.PostMessageContext(t.Context(), "c", opts...)
		return err
	}
	var five []slackgo.Block
	for range 5 {
		five = append(five, slackgo.NewSectionBlock(mrkdwn(strings.Repeat("x", 2900)), nil, nil))
	}
	header := slackgo.NewHeaderBlock(slackgo.NewTextBlockObject(slackgo.PlainTextType, strings.Repeat("h", 151), false, false))
	for want, err := range map[string]error{
		"no_text":             post(),
		"invalid_blocks":      post(section(3001)),
		"msg_blocks_too_long": post(slackgo.MsgOptionBlocks(five...)),
		"invalid_blocks ":     post(slackgo.MsgOptionBlocks(header)),
		"channel_not_found": func() error {
			_, _, err := api.PostMessageContext(t.Context(), "other", section(1))
			return err
		}(),
		"message_not_found": func() error {
			_, _, _, err := api.UpdateMessageContext(t.Context(), "C000000001", "1.1", section(1))
			return err
		}(),
		"invalid_auth": func() error {
			_, err := slackgo.New("wrong", slackgo.OptionAPIURL(srv.URL), slackgo.OptionHTTPClient(client)).AuthTestContext(t.Context())
			return err
		}(),
		"name_taken": func() error {
			_, err := api.CreateConversationContext(t.Context(), slackgo.CreateConversationParams{ChannelName: "c"})
			return err
		}(),
		"invalid_name_specials": func() error {
			_, err := api.CreateConversationContext(t.Context(), slackgo.CreateConversationParams{ChannelName: "C d"})
			return err
		}(),
		"invalid_name_maxlength": func() error {
			_, err := api.CreateConversationContext(t.Context(), slackgo.CreateConversationParams{ChannelName: strings.Repeat("a", 81)})
			return err
		}(),
	} {
		if err == nil || err.Error() != strings.TrimSpace(want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if who, err := api.AuthTestContext(t.Context()); err != nil || who.UserID == "" {
		t.Errorf("auth.test: %+v %v", who, err)
	}
	if err := post(section(3000)); err != nil {
		t.Error(err)
	}
	var limited *slackgo.RateLimitedError
	if err := post(section(1)); !errors.As(err, &limited) || limited.RetryAfter != time.Second {
		t.Errorf("two messages within a second: %v", err)
	}
	if _, _, _, err := api.UpdateMessageContext(t.Context(), "c", srv.Channel("c").Messages[0].TS, section(1)); err == nil {
		t.Error("chat.update took a channel's name")
	}
}

// The page shows what a person would see.
func TestStandInPage(t *testing.T) {
	s, srv := pair(t, Config{})
	i := respondtest.Hostile()["mentions"]
	key := send(t, s, respondtest.Delivery(respond.ActionOpen, i, ""))
	send(t, s, note(key, 3, "declared <b>critical</b>"))
	resp, err := http.Get(srv.Base + "/channels/incidents")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer func() { _ = resp.Body.Close() }()
	var b strings.Builder
	buf := make([]byte, 1<<20)
	for n, err := resp.Body.Read(buf); ; n, err = resp.Body.Read(buf) {
		b.Write(buf[:n])
		if err != nil {
			break
		}
	}
	for _, want := range []string{"CRITICAL", "a&lt;b &amp;", "Acknowledge", "1 reply", "declared &lt;b&gt;critical"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing in %s", want, b.String())
		}
	}
	for _, not := range []string{"<!channel", "@channel</mark>", "javascript:alert(1)\"", "<b>critical"} {
		if strings.Contains(b.String(), not) {
			t.Errorf("%s is in the page", not)
		}
	}
}

// The whole is cut where every block is legal and the sum is not; header and buttons stay.
func TestBudget(t *testing.T) {
	blocks := []slackgo.Block{slackgo.NewHeaderBlock(slackgo.NewTextBlockObject(slackgo.PlainTextType, "h", false, false))}
	for range 10 {
		blocks = append(blocks, slackgo.NewSectionBlock(mrkdwn(strings.Repeat("x", 2900)), nil, nil))
	}
	blocks = append(blocks, buttons(respondtest.Example(), "", ""))
	got := withinBudget(blocks)
	if size(got) > maxTotal || len(got) != 6 || got[0] != blocks[0] || got[5] != blocks[11] {
		t.Errorf("%d blocks of %d characters", len(got), size(got))
	}
}
