package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	const in = `go: downloading example.com/x v1.0.0
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB/x","Output":"want 1\n"}
{"Action":"fail","Package":"p","Test":"TestB/x"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
{"Action":"build-output","ImportPath":"q","Output":"q.go:1: undefined: x\n"}
{"Action":"output","Package":"q","Output":"FAIL\tq [build failed]\n"}
{"Action":"fail","Package":"q"}
{"Action":"output","Package":"r","Output":"PASS\n"}
{"Action":"output","Package":"r","Output":"ok  \tr\t0.2s\n"}
{"Action":"pass","Package":"r"}
{"Action":"output","Package":"s","Test":"TestHangs","Output":"panic: test timed out\n"}
`
	var out strings.Builder
	s := newSummary(&out)
	if err := s.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	s.close()
	const want = "go: downloading example.com/x v1.0.0\n" +
		"want 1\n" +
		"skipped: p TestC: a test that cannot run must fail\n" +
		"FAIL\tp\t0.1s\n" +
		"q.go:1: undefined: x\n" +
		"FAIL\tq [build failed]\n" +
		"ok  \tr\t0.2s\n" +
		"panic: test timed out\n" +
		"1 skipped\n" +
		"1 passed, 3 failed\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
