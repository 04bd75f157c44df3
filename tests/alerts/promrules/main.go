// Evaluates alert rules and queries over given series with Prometheus' own engine: one question on standard input,
// one answer on standard output, both JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// Series are values in the notation of Prometheus' unit tests, the first at time zero, one each interval.
type Series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

// Question: rule files, series, how often rules are evaluated and until when, and queries for the end of that.
type Question struct {
	Rules    []string `json:"rules"`
	Series   []Series `json:"series"`
	Interval float64  `json:"interval"`
	Until    float64  `json:"until"`
	Queries  []string `json:"queries"`
}

// Alert is one that fires at a time, in seconds from the first value.
type Alert struct {
	At          float64           `json:"at"`
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Result of a query: how many series it gives.
type Result struct {
	Query  string `json:"query"`
	Error  string `json:"error"`
	Series int    `json:"series"`
}

// Answer to a question.
type Answer struct {
	Alerts  []Alert  `json:"alerts"`
	Queries []Result `json:"queries"`
	Names   []string `json:"names"`
}

func main() {
	var question Question
	if err := json.NewDecoder(os.Stdin).Decode(&question); err != nil {
		fail(err)
	}
	answer, err := ask(question)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func ask(question Question) (Answer, error) {
	answer := Answer{Alerts: []Alert{}, Queries: []Result{}, Names: []string{}}
	slog.SetDefault(promslog.NewNopLogger())
	interval := time.Duration(question.Interval * float64(time.Second))
	suite, err := promqltest.NewLazyLoader(loading(question, interval), promqltest.LazyLoaderOpts{})
	if err != nil {
		return answer, err
	}
	defer suite.Close()
	suite.SubqueryInterval = interval
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()),
		Appendable: suite.Storage(),
		Context:    context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     promslog.NewNopLogger(),
	})
	groups, errs := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, question.Rules...)
	if errs != nil {
		return answer, fmt.Errorf("%v", errs)
	}
	alerting := alertingRules(groups, &answer)
	start := time.Unix(0, 0).UTC()
	until := start.Add(time.Duration(question.Until * float64(time.Second)))
	for at := start; !at.After(until); at = at.Add(interval) {
		var failure error
		suite.WithSamplesTill(at, func(err error) {
			if failure = err; failure == nil {
				failure = evaluate(suite, groups, at)
			}
		})
		if failure != nil {
			return answer, failure
		}
		firing(alerting, at.Sub(start).Seconds(), &answer)
	}
	suite.WithSamplesTill(until, func(error) { query(suite, question.Queries, until, &answer) })
	return answer, nil
}

func loading(question Question, interval time.Duration) string {
	lines := []string{fmt.Sprintf("load %dms", interval.Milliseconds())}
	for _, one := range question.Series {
		lines = append(lines, fmt.Sprintf("  %s %s", one.Series, one.Values))
	}
	return strings.Join(lines, "\n")
}

func alertingRules(groups map[string]*rules.Group, answer *Answer) []*rules.AlertingRule {
	var found []*rules.AlertingRule
	for _, group := range groups {
		for _, rule := range group.Rules() {
			if alerting, ok := rule.(*rules.AlertingRule); ok {
				alerting.SetRestored(true)
				found = append(found, alerting)
				answer.Names = append(answer.Names, alerting.Name())
			}
		}
	}
	sort.Strings(answer.Names)
	return found
}

func evaluate(suite *promqltest.LazyLoader, groups map[string]*rules.Group, at time.Time) error {
	for _, group := range groups {
		group.Eval(suite.Context(), at)
		for _, rule := range group.Rules() {
			if err := rule.LastError(); err != nil {
				return fmt.Errorf("rule %s at %s: %w", rule.Name(), at, err)
			}
		}
	}
	return nil
}

func firing(alerting []*rules.AlertingRule, at float64, answer *Answer) {
	for _, rule := range alerting {
		for _, active := range rule.ActiveAlerts() {
			if active.State == rules.StateFiring {
				answer.Alerts = append(answer.Alerts, Alert{at, rule.Name(), active.Labels.Map(), active.Annotations.Map()})
			}
		}
	}
}

func query(suite *promqltest.LazyLoader, queries []string, at time.Time, answer *Answer) {
	for _, text := range queries {
		result := Result{Query: text}
		asked, err := suite.QueryEngine().NewInstantQuery(suite.Context(), suite.Storage(), nil, text, at)
		if err == nil {
			done := asked.Exec(suite.Context())
			if err = done.Err; err == nil {
				if vector, problem := done.Vector(); problem == nil {
					result.Series = len(vector)
				} else {
					result.Series = 1
				}
			}
			asked.Close()
		}
		if err != nil {
			result.Error = err.Error()
		}
		answer.Queries = append(answer.Queries, result)
	}
}
