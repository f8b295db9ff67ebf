package pipeline

import (
	"strings"
	"testing"
)

func TestIDsCollapse(t *testing.T) {
	for name, want := range map[string]string{
		"/users/17":               "/users/{number}",
		"/repos/acme/17/issues/9": "/repos/acme/{number}/issues/{number}",
		"GET /users/17":           "GET /users/{number}",
		"/orders/123e4567-e89b-12d3-a456-426614174000/pay":  "/orders/{uuid}/pay",
		"/orders/123E4567-E89B-12D3-A456-426614174000":      "/orders/{uuid}",
		"/o/order-123e4567-e89b-12d3-a456-426614174000.pdf": "/o/order-{uuid}.pdf",
		"/commit/9fceb02d0ae598e95dc970b74767f19372d61af8":  "/commit/{hash}",
		"/commit/9fceb02":                    "/commit/{hash}",
		"/events/01ARZ3NDEKTSV4RRFFQ69G5FAV": "/events/{ulid}",
		"/events/01arz3ndektsv4rrffq69g5fav": "/events/{ulid}",
		"/ksuid/0ujtsYcgvSTl8PAuAdqWYSMnLOv": "/ksuid/0ujtsYcgvSTl8PAuAdqWYSMnLOv", // one digit too few to tell
		"/t/eyJhbGciOiJIUzI1NiJ9_a1B2c3D4":   "/t/{token}",
		"/m/a.b@example.com/read":            "/m/{email}/read",
		"/m/a.b%40example.com":               "/m/{email}",
		"/static/main.8f3a2b1c.js":           "/static/main.{hash}.js",
		"order-182736":                       "order-{number}",
		"/reports/2026-09-13":                "/reports/{date}",
		"/reports/2026-09-13T08:43:00Z":      "/reports/{date}",
		"/search?q=17&page=2":                "/search",
		"/a/17?x=1":                          "/a/{number}",
		"process 4711 jobs":                  "process {number} jobs",
		"/17":                                "/{number}",
		"17":                                 "{number}",
		// What is a name stays one.
		"/users/{id}":             "/users/{id}",
		"/users/:id":              "/users/:id",
		"/v1/users":               "/v1/users",
		"/api/v2.1/users":         "/api/v2.1/users",
		"/oauth2/callback":        "/oauth2/callback",
		"us-east-1":               "us-east-1",
		"/shards/eu-west-12":      "/shards/eu-west-12",
		"GetUserById2":            "GetUserById2",
		"/s3/bucket":              "/s3/bucket",
		"utf8":                    "utf8",
		"/deadbeef":               "/deadbeef",
		"/facade/decade":          "/facade/decade",
		"pkg.Users/GetUserV2":     "pkg.Users/GetUserV2",
		"/@me/settings":           "/@me/settings",
		"/users/@handle":          "/users/@handle",
		"what? a name":            "what? a name",
		"":                        "",
		"/":                       "/",
		"/log4j2-configuration":   "/log4j2-configuration",
		"/x86_64/linux":           "/x86_64/linux",
		"/internationalisation18": "/internationalisation18",
	} {
		if got := CollapseIDs(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
		if got := CollapseIDs(want); got != want {
			t.Errorf("%q becomes %q when it is done again", want, got)
		}
	}
}

func FuzzCollapseIDs(f *testing.F) {
	for _, s := range []string{"/users/17", "/a//b/", "a b 9", "-", "/o/order-123e4567-e89b-12d3-a456-426614174000.pdf", "%40", "@.", "?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := CollapseIDs(s)
		if strings.Count(once, "/") > strings.Count(s, "/") {
			t.Errorf("%q becomes %q", s, once)
		}
		if again := CollapseIDs(once); len(s) <= maxIDName && !strings.ContainsAny(once, "?#") && again != once {
			t.Errorf("%q becomes %q, and then %q", s, once, again)
		}
	})
}

func BenchmarkCollapseIDs(b *testing.B) {
	for name, s := range map[string]string{"plain": "/repos/{owner}/{repo}/pulls", "ids": "/repos/acme/17/issues/123e4567-e89b-12d3-a456-426614174000"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				CollapseIDs(s)
			}
		})
	}
}
