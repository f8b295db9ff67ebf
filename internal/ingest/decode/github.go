package decode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var githubEntry = Entry{
	Name:    "github",
	Summary: "GitHub's webhooks deployment, deployment_status and workflow_run as changes; others are refused as unsupported.",
	Example: `{"action":"created","deployment":{"id":145988746,"sha":"f95f852bd8fca8fcc58a9a2d6c842781e32a215e","ref":"main","task":"deploy","environment":"production","created_at":"2026-09-13T08:20:53Z","creator":{"login":"monalisa"}},"repository":{"name":"checkout","full_name":"octo-org/checkout","html_url":"https://github.com/octo-org/checkout"}}`,
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return foreign(p, one(parseGitHub)) },
}

// githubBody holds what tells events apart: their name is in a header, which does not reach Kafka.
type githubBody struct {
	Action     string          `json:"action"`
	Deployment json.RawMessage `json:"deployment"`
	Status     json.RawMessage `json:"deployment_status"`
	Run        json.RawMessage `json:"workflow_run"`
	Workflow   json.RawMessage `json:"workflow"`
	Job        json.RawMessage `json:"workflow_job"`
	Rule       json.RawMessage `json:"deployment_callback_url"`
	Repository json.RawMessage `json:"repository"`
}

type githubRepository struct {
	Name     string `json:"name"`
	FullName string `json:"full_name"`
	URL      string `json:"html_url"`
}

type githubUser struct {
	Login string `json:"login"`
}

type githubDeployment struct {
	ID          scalar          `json:"id"`
	SHA         string          `json:"sha"`
	Ref         string          `json:"ref"`
	Task        string          `json:"task"`
	Environment string          `json:"environment"`
	CreatedAt   moment          `json:"created_at"`
	Creator     githubUser      `json:"creator"`
	Payload     json.RawMessage `json:"payload"`
}

type githubStatus struct {
	State     string     `json:"state"`
	CreatedAt moment     `json:"created_at"`
	TargetURL string     `json:"target_url"`
	LogURL    string     `json:"log_url"`
	Creator   githubUser `json:"creator"`
}

type githubRun struct {
	ID           scalar     `json:"id"`
	Attempt      scalar     `json:"run_attempt"`
	Name         string     `json:"name"`
	Path         string     `json:"path"`
	DisplayTitle string     `json:"display_title"`
	Branch       string     `json:"head_branch"`
	SHA          string     `json:"head_sha"`
	Conclusion   string     `json:"conclusion"`
	URL          string     `json:"html_url"`
	StartedAt    moment     `json:"run_started_at"`
	CreatedAt    moment     `json:"created_at"`
	UpdatedAt    moment     `json:"updated_at"`
	Actor        githubUser `json:"actor"`
}

func parseGitHub(raw []byte, _ time.Time) (*signal.Change, error) {
	var b githubBody
	if err := fill(raw, &b); err != nil {
		return nil, err
	}
	read := parseGitHubRun
	switch {
	case isObject(b.Deployment) && !isObject(b.Job) && b.Rule == nil:
		read = parseGitHubDeployment
	case isObject(b.Run) && isObject(b.Workflow) && b.Deployment == nil:
	default:
		return nil, unsupported("no deployment, deployment_status or workflow_run of GitHub (action %q)", cut(b.Action, 40))
	}
	var repo githubRepository
	if isObject(b.Repository) {
		if err := fill(b.Repository, &repo); err != nil {
			return nil, err
		}
	}
	if repo.FullName == "" {
		return nil, missing("repository.full_name")
	}
	repo.Name = cmp.Or(repo.Name, repo.FullName[strings.LastIndexByte(repo.FullName, '/')+1:])
	return read(&b, repo)
}

func parseGitHubDeployment(b *githubBody, repo githubRepository) (*signal.Change, error) {
	var d githubDeployment
	if err := fill(b.Deployment, &d); err != nil {
		return nil, err
	}
	if d.ID.text == "" {
		return nil, missing("deployment.id")
	}
	c := &signal.Change{
		Time: d.CreatedAt.Time, ID: "github/" + repo.FullName + "/deployments/" + d.ID.text, Kind: kindByWords(d.Task, signal.Deploy),
		Phase: signal.Started, Target: serviceOf(d.Payload, repo.Name), Actor: d.Creator.Login,
		Title:      fmt.Sprintf("%s of %s %s to %s", cmp.Or(d.Task, "deploy"), repo.Name, cmp.Or(d.Ref, short(d.SHA)), d.Environment),
		Attributes: signal.AttributesOf(signal.Attr{Name: "environment", Value: d.Environment}, signal.Attr{Name: "version", Value: short(d.SHA)}),
	}
	if repo.URL != "" {
		c.URL = repo.URL + "/deployments"
	}
	if isObject(b.Status) {
		var s githubStatus
		if err := fill(b.Status, &s); err != nil {
			return nil, err
		}
		switch s.State {
		case "in_progress":
		case "success":
			c.Phase = signal.Finished
		case "failure", "error":
			c.Phase = signal.Aborted
		case "":
			return nil, missing("deployment_status.state")
		default:
			return nil, unsupported("deployment_status %q is neither the start nor the end of a deployment", cut(s.State, 40))
		}
		c.Time, c.URL = s.CreatedAt.Time, cmp.Or(s.TargetURL, s.LogURL, c.URL)
		c.Actor = cmp.Or(c.Actor, s.Creator.Login)
	} else if b.Action != "created" {
		return nil, unsupported("deployment with the action %q", cut(b.Action, 40))
	}
	if c.Time.IsZero() {
		return nil, missing("created_at")
	}
	return c, nil
}

// serviceOf takes the service from the deployment's own payload, where its maker put one; a repository may hold many.
func serviceOf(payload json.RawMessage, otherwise string) string {
	var own struct {
		Service string `json:"service"`
	}
	if isObject(payload) && json.Unmarshal(payload, &own) == nil && own.Service != "" {
		return own.Service
	}
	return otherwise
}

func parseGitHubRun(b *githubBody, repo githubRepository) (*signal.Change, error) {
	var r githubRun
	var workflow struct {
		Name string `json:"name"`
	}
	if err := fill(b.Run, &r); err != nil {
		return nil, err
	}
	if err := fill(b.Workflow, &workflow); err != nil {
		return nil, err
	}
	name := cmp.Or(r.Name, workflow.Name)
	c := &signal.Change{
		Time: r.UpdatedAt.Time, ID: "github/" + repo.FullName + "/runs/" + r.ID.text + "/" + cmp.Or(r.Attempt.text, "1"),
		Kind: kindByWords(name+" "+r.Path, signal.Job), Phase: signal.Finished, Target: repo.Name,
		Title: strings.TrimSuffix("workflow "+name+": "+r.DisplayTitle, ": "), Actor: r.Actor.Login, URL: r.URL,
		Attributes: signal.AttributesOf(signal.Attr{Name: "branch", Value: r.Branch}, signal.Attr{Name: "version", Value: short(r.SHA)}),
	}
	switch {
	case r.ID.text == "":
		return nil, missing("workflow_run.id")
	case b.Action == "in_progress":
		c.Phase, c.Time = signal.Started, firstTime(r.StartedAt.Time, r.CreatedAt.Time)
	case b.Action != "completed":
		return nil, unsupported("workflow_run with the action %q: in_progress and completed are its start and end", cut(b.Action, 40))
	case r.Conclusion == "success" || r.Conclusion == "neutral":
	case r.Conclusion == "":
		return nil, missing("workflow_run.conclusion")
	case r.Conclusion == "skipped" || r.Conclusion == "action_required":
		return nil, unsupported("workflow_run with the conclusion %q: nothing was run", r.Conclusion)
	default:
		c.Phase = signal.Aborted
	}
	if c.Time.IsZero() {
		return nil, missing("workflow_run.updated_at")
	}
	return c, nil
}

// short is a commit as people write it.
func short(sha string) string {
	if len(sha) == 40 {
		return sha[:12]
	}
	return sha
}
