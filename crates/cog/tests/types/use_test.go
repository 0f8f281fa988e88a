package modules

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

const answered = `{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
	"data": {"verdict": "approve", "issues": [], "rationale": "It is right."}}`
const failed = `{"ok": false, "meta": {"confidence": 0, "risk": "high", "explain": "No."},
	"error": {"code": "E4002", "message": "too many requests", "recoverable": true}}`

// A server that answers each request of a caller with a token, and refuses others.
func serve(t *testing.T) *Client {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/modules/code-reviewer/execute" || string(body) != `{"input":{"code":"x","focus":["security"]}}` {
			t.Errorf("%s %s", r.URL.Path, body)
		}
		if r.Header.Get("Authorization") == "Bearer token" {
			io.WriteString(w, answered)
			return
		}
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, failed)
	}))
	t.Cleanup(server.Close)
	return &Client{Server: server.URL}
}

func TestClient(t *testing.T) {
	client := serve(t)
	input := CodeReviewerInput{Code: "x", Focus: []CodeReviewerCategory{CodeReviewerCategorySecurity}}
	var failure *Failure
	if _, err := client.CodeReviewer(context.Background(), input); !errors.As(err, &failure) || failure.Code != "E4002" {
		t.Fatal(err)
	}
	client.Token = "token"
	review, err := client.CodeReviewer(context.Background(), input)
	if err != nil || review.Data.Verdict != CodeReviewerDataVerdictApprove || review.Meta.Confidence != 0.9 {
		t.Fatal(review, err)
	}
	client.Server = "http://127.0.0.1:1"
	if _, err := client.CodeReviewer(context.Background(), input); err == nil {
		t.Fatal("a server that is not there answers")
	}
}
