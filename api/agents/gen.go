package agents

//go:generate ../../scripts/protoc agents.proto
