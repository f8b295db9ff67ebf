package main

import (
	"testing"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
)

func TestMain(m *testing.M) { chlocaltest.Main(m) }
