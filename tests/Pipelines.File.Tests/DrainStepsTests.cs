using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>What comes behind the last write of a writer.</summary>
public sealed class DrainStepsTests
{
    private readonly DrainSteps _steps = new(isFileNew: false, isFileChanged: false);

    [Theory]
    [InlineData(false, false, false, false)]
    [InlineData(true, false, false, true)]
    [InlineData(false, true, false, true)]
    [InlineData(false, false, true, true)]
    public void EndsWithSteps_TheWriterIsCompleted_SaysWhetherAnyStepFollows(bool trims, bool syncs, bool takesName, bool expected)
    {
        Assert.False(_steps.EndsWithSteps);
        _steps.Complete(trims, syncs, takesName);
        Assert.Equal(expected, _steps.EndsWithSteps);
    }
}
