package effect

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/jsonpath"
)

// scope is what "when" sees.
type scope struct {
	JSON    any            `expr:"json"`
	Context any            `expr:"context"` // what the parents of a batch's item say
	Headers map[string]any `expr:"headers"`
	Key     string         `expr:"key"`
	Source  string         `expr:"source"`
	Type    string         `expr:"type"`
}

// answer is what "success" sees: the target's answer.
type answer struct {
	JSON    any            `expr:"json"`
	Headers map[string]any `expr:"headers"`
	Status  int            `expr:"status"`
}

// CompileWhen compiles the condition of an effect, an expression over json,
// headers, context, key, source and type. A missing path is nil, which is neither true
// nor more, less or equal to anything but nil. An expression that fails on an
// event (a text compared with a number) is permanent: the event stays what it is.
func CompileWhen(text string) (func(hookonce.Event) (bool, error), error) {
	program, err := compileExpr(text, scope{})
	if err != nil {
		return nil, err
	}
	return func(e hookonce.Event) (bool, error) {
		ok, err := truth(program, newView(e).scope())
		if err != nil {
			return false, consumer.Permanent(fmt.Errorf("when: %w", err))
		}
		return ok, nil
	}, nil
}

// compileExpr compiles an expression that is true or false.
func compileExpr(text string, env any) (*vm.Program, error) {
	opts := []expr.Option{
		expr.Env(env), expr.AsBool(), expr.Patch(lenient{}),
		// All of them are declared to return any: the arguments of a call whose
		// type is known already are not checked again, and unknown names pass.
		expr.Function("_get", get, new(func(any, any) any)),
		expr.Function("_list", list, new(func(any) any)),
		expr.Function("_true", isTrue, new(func(any) any)),
	}
	for op, name := range orders {
		opts = append(opts, expr.Function(name, ordered(op), new(func(any, any) any)))
	}
	program, err := expr.Compile(text, opts...)
	if err != nil {
		return nil, fmt.Errorf("is no expression (%s): write one like json.order.total > 0", oneLine(err.Error()))
	}
	return program, nil
}

// truth runs an expression; nil counts as false.
func truth(program *vm.Program, env any) (bool, error) {
	v, err := expr.Run(program, env)
	if err != nil {
		return false, errors.New(oneLine(err.Error()))
	}
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	default:
		return false, fmt.Errorf("the expression gives %s, not true or false", nameOf(v))
	}
}

// oneLine keeps the first line of an error of the expression language; the
// others show the place.
func oneLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// orders are the operators that put values in order, and the functions that
// stand for them where a side's type is known only when it runs.
var orders = map[string]string{"<": "_lt", "<=": "_le", ">": "_gt", ">=": "_ge"}

// lists are the functions that take a list in front.
var lists = map[string]bool{
	"all": true, "none": true, "any": true, "one": true, "filter": true, "map": true, "count": true, "sum": true, "find": true,
	"findIndex": true, "findLast": true, "findLastIndex": true, "len": true, "first": true, "last": true,
}

// lenient rewrites an expression so that a missing path is nil and nil does no
// harm: events differ, and what is not there must not fail them.
type lenient struct{}

// Visit rewrites one node; those below it are rewritten already.
func (lenient) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.MemberNode:
		if name, ok := n.Property.(*ast.StringNode); ok && isHeaders(n.Node) {
			n.Property = &ast.StringNode{Value: http.CanonicalHeaderKey(name.Value)}
		}
		if open(n.Node) || kind(n.Node) == reflect.Map {
			replace(node, call("_get", n.Node, n.Property))
		}
	case *ast.BinaryNode:
		switch name := orders[n.Operator]; {
		case name != "" && (open(n.Left) || open(n.Right)):
			replace(node, call(name, n.Left, n.Right))
		case n.Operator == "and" || n.Operator == "or" || n.Operator == "&&" || n.Operator == "||":
			n.Left, n.Right = decided(n.Left), decided(n.Right)
		}
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			n.Node = decided(n.Node)
		}
	case *ast.ConditionalNode:
		n.Cond = decided(n.Cond)
	case *ast.BuiltinNode:
		if lists[n.Name] && len(n.Arguments) > 0 && open(n.Arguments[0]) {
			n.Arguments[0] = call("_list", n.Arguments[0])
		}
	}
}

func isHeaders(n ast.Node) bool {
	id, ok := n.(*ast.IdentifierNode)
	return ok && id.Value == "headers"
}

// kind is a node's type as far as it is known before it runs.
func kind(n ast.Node) reflect.Kind {
	if t := n.Type(); t != nil {
		return t.Kind()
	}
	return reflect.Interface
}

func open(n ast.Node) bool { return kind(n) == reflect.Interface }

func decided(n ast.Node) ast.Node {
	if open(n) {
		return call("_true", n)
	}
	return n
}

// replace puts a node in another's place, and leaves its type open where
// ast.Patch would keep the old one's.
func replace(node *ast.Node, by ast.Node) {
	by.SetLocation((*node).Location())
	*node = by
}

func call(name string, args ...ast.Node) ast.Node {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
}

func get(args ...any) (any, error) {
	switch in := args[0].(type) {
	case map[string]any:
		if name, ok := args[1].(string); ok {
			return in[name], nil
		}
	case []any:
		i, ok := args[1].(int)
		if i < 0 {
			i += len(in)
		}
		if ok && i >= 0 && i < len(in) {
			return in[i], nil
		}
	}
	return nil, nil
}

func list(args ...any) (any, error) {
	if args[0] == nil {
		return []any{}, nil
	}
	return args[0], nil
}

func isTrue(args ...any) (any, error) {
	switch v := args[0].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	default:
		return nil, fmt.Errorf("%s stands where true or false is wanted", nameOf(v))
	}
}

// ordered is the function behind an operator of [orders].
func ordered(op string) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		if args[0] == nil || args[1] == nil {
			return false, nil
		}
		c, err := compare(args[0], args[1])
		if err != nil {
			return nil, err
		}
		return c < 0 && op[0] == '<' || c > 0 && op[0] == '>' || c == 0 && len(op) == 2, nil
	}
}

func compare(a, b any) (int, error) {
	if x, ok := a.(int); ok {
		if y, ok := b.(int); ok {
			return cmp.Compare(x, y), nil
		}
	}
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return cmp.Compare(x, y), nil
		}
	}
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), nil
		}
	}
	if x, ok := a.(time.Time); ok {
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), nil
		}
	}
	return 0, fmt.Errorf("%s cannot be compared with %s", nameOf(a), nameOf(b))
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// nameOf names a value's type as JSON does; never the value.
func nameOf(v any) string {
	switch v.(type) {
	case int, float64:
		return "a number"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case nil:
		return "nothing"
	}
	return fmt.Sprintf("a %T", v)
}

// answerScope is a target's answer as "success" sees it.
func answerScope(status int, header http.Header, body []byte) answer {
	a := answer{Status: status, Headers: make(map[string]any, len(header))}
	for name, values := range header {
		a.Headers[name] = strings.Join(values, ", ")
	}
	if jsonpath.Valid(body) == nil {
		a.JSON = jsonpath.Tree(body, calculable)
	}
	return a
}
