namespace FilePipelines.TwoCallers.Tests;

/// <summary>
/// What one run of a test decided, step by step. <see cref="MoveNext"/> goes on to the next run, and so, one after the other, to every run
/// that there is: a depth-first search of a tree that nobody has to write down.
/// </summary>
internal sealed class Choices
{
    private readonly List<(int Taken, int Options)> _steps = [];
    private int _next;

    /// <summary>The run that took these choices, as <see cref="ToString"/> printed them.</summary>
    public static Choices Parse(string taken)
    {
        Choices choices = new();
        foreach (string step in taken.Split('.', StringSplitOptions.RemoveEmptyEntries))
        {
            choices._steps.Add((int.Parse(step, System.Globalization.CultureInfo.InvariantCulture), 0));
        }

        return choices;
    }

    /// <summary>One of so many options, counted from 0.</summary>
    public int Choose(int options)
    {
        if (_next == _steps.Count)
        {
            _steps.Add((0, options));
        }

        (int taken, int known) = _steps[_next];
        if (taken >= options || (known != options && known != 0))
        {
            throw new InvalidOperationException(
                $"A run that was begun in the same way went on in another: step {_next} has {options} options, and had {known}.");
        }

        _steps[_next++] = (taken, options);
        return taken;
    }

    /// <summary>Turns to the next run; <see langword="false"/> after the last.</summary>
    public bool MoveNext()
    {
        _steps.RemoveRange(_next, _steps.Count - _next);
        _next = 0;
        while (_steps.Count > 0)
        {
            (int taken, int options) = _steps[^1];
            if (taken + 1 < options)
            {
                _steps[^1] = (taken + 1, options);
                return true;
            }

            _steps.RemoveAt(_steps.Count - 1);
        }

        return false;
    }

    public override string ToString() => string.Join('.', _steps.Take(_next).Select(step => step.Taken));
}
