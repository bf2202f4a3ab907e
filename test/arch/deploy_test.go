package arch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestComposeIsSafeToTry: what is made for a look must not open the machine,
// nor lose what the receiver answered for.
func TestComposeIsSafeToTry(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "deploy", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Command []string `yaml:"command"`
			Ports   []string `yaml:"ports"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"receiver", "consumer", "migrate", "redis", "rabbitmq", "postgres"} {
		if _, ok := file.Services[name]; !ok {
			t.Errorf("deploy/compose.yaml has no service %s", name)
		}
	}
	for name, service := range file.Services {
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s: loopback only, the passwords are public", name, port)
			}
		}
	}
	redis := file.Services["redis"].Command
	for flag, want := range map[string]string{"--appendonly": "yes", "--appendfsync": "always", "--maxmemory-policy": "noeviction"} {
		if i := slices.Index(redis, flag); i < 0 || i+1 >= len(redis) || redis[i+1] != want {
			t.Errorf("redis runs without %s %s: a kill would lose accepted events", flag, want)
		}
	}
}

// TestImageHoldsTheProgramsOnly: FROM scratch, and nobody is root inside.
func TestImageHoldsTheProgramsOnly(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nFROM scratch\n", "\nUSER 65532:65532\n", "\nENTRYPOINT [\"/hookonce\"]\n",
		"bin/hookonce", "bin/receiver", "bin/consumer",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("deploy/Dockerfile lacks %q", want)
		}
	}
}
